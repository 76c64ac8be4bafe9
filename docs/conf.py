"""How sphinx builds the documentation: Markdown pages, the parts of them that the package itself writes, docstrings."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import fill
import plain_docstrings

import augury

project = "Augury"
author = "the authors of Augury"
project_copyright = "the authors of Augury, MIT licence"
version = release = augury.__version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
smartquotes_action = "De"  # dashes and dots; quotes stay as they are, since many stand for code

default_role = "code"  # single backticks in docstrings are code, as in Markdown
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = "Augury"
html_copy_source = False
html_show_sphinx = False


def _fill(app: Any, docname: str, source: list[str]) -> None:
    text = fill.filled(source[0])
    result = docname.startswith("results/") and docname != "results/README"
    source[0] = f"---\norphan: true\n---\n\n{text}" if result else text  # linked to, not in the sidebar


def setup(app: Any) -> None:
    """Connect what is ours to sphinx.

    Parameters
    ----------
    app
        The application.
    """
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", plain_docstrings.process, priority=400)  # napoleon: 500
    app.connect("autodoc-process-docstring", plain_docstrings.process_again, priority=600)
    app.connect("autodoc-process-signature", plain_docstrings.signature)
