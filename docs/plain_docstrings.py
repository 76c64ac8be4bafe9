"""Docstrings of this project as reStructuredText: their tables, indented formulas, stars and bars are written plainly.

Layout is only changed before the first section ("Parameters", underlined); the sections are napoleon's.
"""

import re
from dataclasses import is_dataclass
from typing import Any

CODE = re.compile(r"(`[^`]*`)")
ATTRIBUTES = ("attribute", "data", "property")
"""Kinds of which napoleon would take the words before a colon for a type."""
_kept: dict[str, list[str]] = {}


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place, as sphinx asks for.

    Parameters
    ----------
    app, what, name, obj, options
        What sphinx tells of the object.
    lines
        The docstring, line by line.
    """
    end = next((k for k, line in enumerate(lines[1:]) if line and set(line) == {"-"}), len(lines))
    lines[:] = [*rst(lines[:end]), *map(_plain, lines[end:])]
    if what in ATTRIBUTES:
        _kept[name] = list(lines)


def process_again(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Give an attribute its words back, after napoleon.

    Parameters
    ----------
    app, what, name, obj, options, lines
        As for `process`.
    """
    if what in ATTRIBUTES:
        lines[:] = _kept.pop(name)


def signature(app: Any, what: str, name: str, obj: Any, *given: Any) -> tuple[str, str] | None:
    """Leave out the signature of a record, whose fields follow one by one.

    Parameters
    ----------
    app, what, name, obj, given
        What sphinx tells of the object.

    Returns
    -------
    tuple
        Nothing to show; None to leave it as it is.
    """
    return ("", "") if what == "class" and is_dataclass(obj) else None


def rst(lines: list[str]) -> list[str]:
    """Return lines as reStructuredText.

    Parameters
    ----------
    lines
        Text in which tables have bars, and indented blocks are shown as they are.

    Returns
    -------
    list
        The same with list-tables and literal blocks.
    """
    out: list[str] = []
    for block in _blocks(lines):
        if block[0].startswith("|"):
            out += _table(block)
        elif block[0].startswith("    "):
            out += ["::", "", *block, ""]
        else:
            out += [*map(_plain, block), ""]
    return out


def _plain(line: str) -> str:
    """Let stars and bars mean themselves, outside of code."""
    pieces = CODE.split(line)
    return "".join(piece if k % 2 else re.sub(r"([*|])", r"\\\1", piece) for k, piece in enumerate(pieces))


def _blocks(lines: list[str]) -> list[list[str]]:
    """Part lines at blank ones; indented neighbours stay together."""
    blocks: list[list[str]] = []
    fresh = True
    for line in lines:
        if not line.strip():
            fresh = True
            continue
        if not fresh:
            blocks[-1].append(line)
        elif blocks and line.startswith("    ") and blocks[-1][0].startswith("    "):
            blocks[-1] += ["", line]
        else:
            blocks.append([line])
        fresh = False
    return blocks


def _table(block: list[str]) -> list[str]:
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in block if "---" not in line]
    out = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        out += [f"   {'*' if k == 0 else ' '} - {_plain(cell)}" for k, cell in enumerate(row)]
    return [*out, ""]
