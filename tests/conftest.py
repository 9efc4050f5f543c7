import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # oracle.py, problems.py and other helpers
os.environ["MPLBACKEND"] = "Agg"  # no windows
_CACHE = tempfile.TemporaryDirectory()  # of forests, for this run
os.environ["CREDALCHAIN_CACHE"] = _CACHE.name
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # there is a worker for every core
    os.environ.setdefault(name, "1")

import profiles  # noqa: E402, F401  (registers them)

settings.load_profile("usual")  # unless an option of pytest names another


@pytest.fixture(autouse=True, scope="module")
def _small_forests():
    """Forests of default size are small here; those of documentation and processes are not."""
    from shell import small_forests  # not above: the process that only starts workers needs nothing

    with small_forests():
        yield


@pytest.fixture(scope="session")
def yeast():
    """The real yeast data that the package river ships."""
    from credalchain.datasets import load_embedded_yeast

    return load_embedded_yeast()


class Doctests:
    """Files are imported for their doctests only if they have some."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path):
        found = yield
        if file_path.suffix == ".py" and ">>>" not in file_path.read_text(encoding="utf-8"):
            found = [collector for collector in found if type(collector) is pytest.Module]
        return found


def pytest_configure(config):
    """Hooks of this file see only the files of this folder."""
    config.pluginmanager.register(Doctests())


def pytest_collection_modifyitems(items):
    """Tests of a file share a worker, and what they have fitted; some run only at night."""
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.name))
    if os.environ.get("CREDALCHAIN_FULL") != "1":
        reason = "long: make test-full, and the workflow every night, run it"
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes():
    """Compile the kernels once, where every worker would compile them."""
    script = Path(__file__).parent / "preloaded.py"
    compiling = [subprocess.Popen([sys.executable, script, part]) for part in ("chain", "joint")]
    for process in compiling:
        process.wait()


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests of its group."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    chromium = next(filter(None, found), None)
    if chromium is None:
        pytest.skip("there is no Chromium on this machine")
    quietly = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    quietly += ["--disable-component-update", "--disable-sync", "--no-first-run"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=quietly)
        yield browser
        browser.close()
