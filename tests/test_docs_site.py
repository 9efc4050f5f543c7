"""The documentation site builds without a warning, and everything that it points at is there."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import credalchain
from credalchain import datasets, metrics, plotting, rivals, studies

ROOT = Path(__file__).parents[1]
SOURCES = (
    "docs",
    "examples",
    "benchmarks/results",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CITATION.cff",
)
RUN_EXAMPLES = os.environ.get("CREDALCHAIN_FULL") == "1"  # which takes as long as all pages
GENERATED = shutil.ignore_patterns("_build", "auto_examples", "generated", "__pycache__")


class Page(HTMLParser):
    """What a page points at, and what can be pointed at in it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors: list[str] = []
        self.links: list[str] = []  # to pages and files
        self.parts: list[str] = []  # that the browser loads by itself
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if given.get("id"):
            self.anchors.append(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("img", "script", "iframe") and given.get("src"):
            self.parts.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.parts.append(given["href"])


def build_site(folder: Path) -> Path:
    """Build the site from nothing in a folder of its own: a cache could hide what is broken."""
    for name in SOURCES:
        source, copy = ROOT / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=GENERATED)
        else:
            shutil.copy(source, copy)
    options = ["-W", "--keep-going", "-n", "-q", "-b", "html"]
    options += [] if RUN_EXAMPLES else ["-D", "plot_gallery=0"]
    code = (
        "import shell, sys\nfrom sphinx.cmd.build import main\n"
        "with shell.small_forests(): sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *options, folder / "docs", folder / "html"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def read_pages(site: Path) -> dict[Path, Page]:
    """All pages; the theme's folder has a template that is none."""
    files = [file for file in sorted(site.rglob("*.html")) if "_static" not in file.parts]
    return {file: Page(file) for file in files}


def broken(page: Path, links: list[str], pages: dict[Path, Page]) -> Iterator[str]:
    """Links into the site that lead nowhere."""
    for link in links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if target.is_dir():
            target = target / "index.html"
        fragment = unquote(parts.fragment)
        if not target.is_file():
            yield f"{page.name}: {link} is not there"
        elif fragment and target in pages and fragment not in pages[target].anchors:
            yield f"{page.name}: {link} has no such place"


def test_a_link_that_leads_nowhere_is_noticed(tmp_path):
    right = ["there.html", "there.html#place", "https://example.org"]
    wrong = ["gone.html", "there.html#gone", "#gone", "gone.png"]
    text = "".join(f'<a href="{link}">x</a>' for link in right + wrong)
    (tmp_path / "here.html").write_text(text)
    (tmp_path / "there.html").write_text('<p id="place">x</p>')
    pages = read_pages(tmp_path)
    here = tmp_path / "here.html"
    found = list(broken(here, pages[here].links, pages))
    assert [problem.split()[1] for problem in found] == wrong


def test_every_public_name_is_listed_in_the_reference():
    listed = " ".join(file.read_text(encoding="utf-8") for file in ROOT.glob("docs/api/*.rst"))
    words = set(re.findall(r"\w+", listed))
    missing = [name for name in public_names() if name.rpartition(".")[2] not in words]
    assert not missing


@pytest.mark.slow
def test_the_site(tmp_path):
    """It builds without a warning, and its links lead somewhere."""
    site = build_site(tmp_path / "folder with spaces")
    pages = read_pages(site)
    assert len(pages) > 100
    check_links(pages)
    check_pages_by_themselves(pages)
    check_reference(site, pages)
    check_gallery(site, pages)


def check_links(pages: dict[Path, Page]) -> None:
    """Every internal link leads to a page, a file or a place in a page."""
    found = [
        problem
        for file, page in pages.items()
        for problem in broken(file, page.links + page.parts, pages)
    ]
    assert not found, "\n".join(found)


def check_pages_by_themselves(pages: dict[Path, Page]) -> None:
    """No place has two meanings, and nothing is loaded from the network."""
    for file, page in pages.items():
        twice = {one for one in page.anchors if page.anchors.count(one) > 1}
        assert not twice, f"{file.name}: {twice}"
        outside = [part for part in page.parts if urlsplit(part).netloc]
        assert not outside, f"{file.name} loads {outside}"


def public_names() -> Iterator[str]:
    """Everything that has to be in the reference."""
    for name in credalchain.__all__:
        if not inspect.ismodule(getattr(credalchain, name)):
            yield f"credalchain.{name}"
    yield from ("credalchain.model_files.read_about", "credalchain.model_files.untrusted_types")
    for module in (datasets, studies, metrics, plotting, rivals):
        names = [name for name in vars(module) if name[0].isalpha()]
        for name in getattr(module, "__all__", names):
            if name not in credalchain.__all__ and callable(getattr(module, name)):
                yield f"{module.__name__}.{name}"


def python_objects(inventory: Path) -> dict[str, str]:
    """Names and places from Sphinx's inventory: four lines, then compressed ones."""
    content = inventory.read_bytes().split(b"\n", 4)[4]
    places = {}
    for line in zlib.decompress(content).decode().splitlines():
        name, kind, _, place, _ = line.split(maxsplit=4)
        if kind.startswith("py:"):
            places[name] = place.replace("$", name)
    return places


def check_reference(site: Path, pages: dict[Path, Page]) -> None:
    """Every public name has a place in the reference."""
    places = python_objects(site / "objects.inv")
    missing = sorted(set(public_names()) - set(places))
    assert not missing
    for name in public_names():
        place = urlsplit(places[name])
        assert place.path.startswith("api/"), name
        assert unquote(place.fragment) in pages[site / place.path].anchors, name


def check_gallery(site: Path, pages: dict[Path, Page]) -> None:
    """Every example has a page with a picture that it has drawn."""
    examples = sorted((ROOT / "examples").glob("plot_*.py"))
    assert len(examples) >= 6
    for example in examples:
        page = pages[site / "auto_examples" / f"{example.stem}.html"]
        pictures = [part for part in page.parts if f"sphx_glr_{example.stem}_" in part]
        assert pictures or not RUN_EXAMPLES, example.stem
