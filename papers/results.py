"""Results as JSON lines, appended as each cell ends: a run that is killed loses only the cell in progress."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from augury.core.errors import AuguryError, RunError
from papers.cell import Result


def append(path: Path, result: Result) -> None:
    """Add one line to a results file, on the disk before this returns."""
    line = json.dumps(result.to_json(), allow_nan=False, separators=(",", ":")).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            # After a line that was cut short begin a new one. One write, so that two processes may share the file.
            file.write(b"\n" + line if _cut_short(path) else line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}. Choose a folder with --out.") from error


def _cut_short(path: Path) -> bool:
    with path.open("rb") as file:
        if not path.stat().st_size:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def read(paths: Iterable[Path]) -> dict[str, Result]:
    """Return all results by the key of their cell; of two with one key the later.

    A line that was cut short, or that another version wrote, counts as not there: its cell is run again.
    """
    found = {}
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        for line in lines:
            try:
                result = Result.from_json(json.loads(line))
            except (ValueError, TypeError, KeyError, AuguryError):
                continue
            found[result.key] = result
    return found
