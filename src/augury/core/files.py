"""Atomic file writes, and the type of a progress callback."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from augury.core.errors import RunError

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and the total (0 if unknown)."""


def silent(what: str, done: int, total: int) -> None:
    """Report no progress: the default callback."""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; move it into place if the block succeeds, delete it otherwise."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}. Choose a folder that you may write to.") from error
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def is_part(name: str) -> bool:
    """Say whether a file is what `written_whole` leaves when it is killed."""
    return re.fullmatch(r"\..+\.\d+\.part", name) is not None


def check_writable(folder: Path) -> None:
    """Raise unless files can be written to a folder, or it can be created; nothing is changed."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "you may not write to" if there.is_dir() else "there is a file at"
        raise RunError(f"cannot write to {folder}: {why} {there}. Choose another folder.")


def write_text(path: Path, text: str) -> None:
    with written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
