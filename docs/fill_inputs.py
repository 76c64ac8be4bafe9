"""Writes reference/inputs.md: what data and models are accepted, refused or asked about, from the tests that hold it.

    python docs/fill_inputs.py

Every `test_*_kinds.py` has lists `ACCEPTED` (what, make, options, line) and `REFUSED` (what, make, message).
"""

import inspect
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from markdown_tables import table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "inputs.md"
MODULES = {
    "test_disk_kinds": "Folders and files",
    "test_data_kinds": "What Python passes",
    "test_model_kinds": "Models",
}
"""Where the lists are, and the titles of their sections."""

HEAD = """\
# What is accepted, refused or asked about

The tests hold every row of this page, and it is written from them (`python docs/fill_inputs.py`). "Asked about" means
that the input can be read in several ways: the message says which, and what to add (`kind=`, `task=`; `--kind`, ...).
"""


def page() -> str:
    """Return the page.

    Returns
    -------
    str
        Markdown.
    """
    parts = [HEAD]
    for name, title in MODULES.items():
        if (ROOT / "tests" / f"{name}.py").is_file():
            parts += [f"## {title}\n", table(["input", "", "what is read, or said"], rows(import_module(name))) + "\n"]
    return "\n".join(parts)


def rows(tests: ModuleType) -> Iterator[Sequence[str]]:
    """Yield the rows of one section."""
    for what, make, options, line in tests.ACCEPTED:
        yield what, "accepted", _cell(_said(tests, "load", make, options) or line)
    for what, make, options, line in getattr(tests, "UNLABELLED", ()):
        yield what, "accepted", _cell(_said(tests, "load_inputs", make, options) or line)
    for what, make, message, *_ in tests.REFUSED:
        said = _said(tests, "load", make, {}) or re.sub(r"\\\\(.)", r"\\1", message).replace(".*", "...")
        yield what, "asked about" if re.search("(kind|task)='", said) else "refused", _cell(said)


def _said(tests: ModuleType, reader: str, make: Callable[..., Any], options: dict[str, Any]) -> str:
    """Return what reading an input says; nothing for what is not read."""
    from augury.core.errors import InputError

    read = getattr(tests, reader, None)
    if read is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = (
                make(Path(folder))
                if inspect.signature(make).parameters and make.__module__ == tests.__name__
                else make()
            )
            said = read(made, **options).describe()
        except InputError as error:
            said = str(error)
    return str(said).replace(folder, "DATA")


def _cell(text: str) -> str:
    return re.sub(r"(?<=\d\.\d\d)\d+", "", text.replace("\n", " ").replace("<", "&lt;"))  # two digits are enough


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    PAGE.write_text(page(), encoding="utf-8")
