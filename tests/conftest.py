import os
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
import shell  # noqa: E402

settings.load_profile("usual")  # unless an option of pytest names another


@pytest.fixture(autouse=True, scope="module")
def _small_forests():
    """Forests of default size are small here; those of documentation and processes are not."""
    with shell.small_forests():
        yield


@pytest.fixture(scope="session")
def yeast():
    """The real yeast data that the package river ships."""
    from credalchain.datasets import load_embedded_yeast

    return load_embedded_yeast()
