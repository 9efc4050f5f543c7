"""How Sphinx builds the site: ``make docs``."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes

from credalchain import __version__

project = "credalchain"
author = "The credalchain developers"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/**/*.ipynb"]
templates_path = ["_templates"]
nitpicky = True

# -- Markdown: pages are read on GitHub, too -----------------------------------------------------

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

# Files of the project's root folder that have a page here.
_PAGES = {
    "ARCHITECTURE.md": "development/architecture.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "CHANGELOG.md": "development/changelog.md",
}
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")


def read_page(app: Any, docname: str, content: list[str]) -> None:
    """Links of a page of this folder to files that have a page here."""
    for file, page in _PAGES.items():
        content[0] = content[0].replace(f"](../{file}", f"]({page}")


def read_included(app: Any, path: Path, docname: str, content: list[str]) -> None:
    """Links of a file of the root folder, which a page in ``development`` includes."""
    if path.parent == Path(".."):
        content[0] = _LINK.sub(lambda link: "](../" + _place(link[1]), content[0])


def _place(path: str) -> str:
    """Return a path from the root folder, as it is from this folder."""
    if path in _PAGES:
        return _PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"


def trim_code(app: Any, doctree: nodes.document) -> None:
    """Take away the empty line that a doctest in Markdown needs at its end."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if text != text.rstrip("\n"):
            block.rawsource = text.rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


# -- the reference -------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"  # types stand in the text, in the manner of numpy
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False  # the template does
add_module_names = False
toc_object_entries_show_parents = "hide"


def skip_members_of_others(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Skip what classes inherit from scikit-learn and Python: it is documented there."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    module = getattr(function, "__module__", None) or ""
    if callable(function) and not module.startswith("credalchain"):
        return True
    return None


# -- the gallery ---------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"[\\/]plot_",
    "ignore_pattern": r"data_of_any_size|demo|lightgbm|tickets",  # no pictures, or other packages
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("credalchain",),
    "abort_on_example_error": False,
    "show_signature": False,
    "write_computation_times": False,
    "thumbnail_size": (640, 448),
    "image_srcset": ["2x"],
}
suppress_warnings = ["sphinx_gallery.space_in_filename"]  # it means the folders above them, too

# -- how it looks --------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "credalchain"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False
html_context = {"default_mode": "auto"}  # without it the theme complains in the console
html_favicon = "_static/favicon.svg"
html_sidebars = {"getting-started": [], "tutorial": []}
html_theme_options = {
    "logo": {
        "text": "credalchain",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo-dark.svg",
    },
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_prev_next": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: Any) -> None:
    """Tell Sphinx about the functions above."""
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    app.connect("doctree-read", trim_code)
    app.connect("autodoc-skip-member", skip_members_of_others)
