"""Settings of Sphinx; what is read here was laid into its folder by build.py."""

import sys
from pathlib import Path
from typing import Any

from tools.site.docstrings import as_rest

project, author = "itr_study", "itr_study authors"
copyright = author
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
exclude_patterns = ["figures/scenes/**"]
html_theme, html_title, html_baseurl = "furo", "itr_study", ""
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = html_show_sourcelink = html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses without a server
html_theme_options = {"navigation_with_keys": False}
# One file that asks for no font, laid beside the pages.
mathjax_path = "tex-svg-full.js"
mathjax3_config = {"options": {"enableMenu": False}}
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, Any] = {}  # no widget is alive here, and nothing comes from elsewhere
nb_output_stderr = "remove"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 4
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
pygments_style, pygments_dark_style = "default", "monokai"
suppress_warnings = ["myst.header", "config.cache"]  # a notebook may skip a level of headings
sys.path.insert(0, str(Path(__file__).parent))


def docstring(app: Any, what: str, name: str, part: Any, options: Any, lines: list[str]) -> None:
    """Replace a docstring by its reStructuredText."""
    lines[:] = as_rest("\n".join(lines))


def setup(app: Any) -> None:
    """Read docstrings as this project writes them."""
    app.connect("autodoc-process-docstring", docstring)
