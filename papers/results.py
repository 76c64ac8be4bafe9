"""A run of a grid as plain data, its result, and the file of JSON lines in which results are kept. Free of torch."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from augury.core.errors import AuguryError, InputError, RunError, choose
from augury.records.results import Invariance, Record

ORIGINAL = "original"
"""What the data are called when nothing is planted in them."""

FILTERS = ("data", "variant", "subset", "model", "method", "seed")
"""By what a grid can be narrowed."""


@dataclass(frozen=True)
class Cell(Record):
    """One run: the data, the network, the method, the seed and every setting that is not a default."""

    data: str
    variant: str  # the truth planted in the data, or "original"
    model: str
    method: str  # what follows a "/" only distinguishes rows of a table ("lila/ef")
    seed: int  # of data and run alike
    settings: Mapping[str, Any] = field(default_factory=dict)  # fields of `LearnConfig`, of JSON types
    subset: int | None = None  # training examples, drawn at random; None: all
    test_images: int | None = None  # test examples, drawn at random, the same for every seed; None: all

    @property
    def key(self) -> str:
        """What a result is filed under: names for a person, a digest of everything for the machine."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{self.data}:{self.variant}:{self.model}:{self.method}:{self.seed}:{digest}"

    @property
    def algorithm(self) -> str:
        """The method as `learn` knows it."""
        return self.method.partition("/")[0]


@dataclass(frozen=True)
class Result(Record):
    """What one cell left: a line of the results file."""

    key: str
    cell: Cell
    invariance: Invariance
    epoch: int  # the epoch whose state was kept
    N: int  # training examples
    curves: dict[str, list[float | None]] = field(default_factory=dict)  # by epoch: loss, evidence, widths
    machine: dict[str, Any] = field(default_factory=dict)  # cores, memory, threads: what the seconds mean
    extra: dict[str, Any] = field(default_factory=dict)  # what only some items measure

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Result":
        """Rebuild the record and what it holds."""
        cell, invariance = Cell.from_json(values["cell"]), Invariance.from_json(values["invariance"])
        return super().from_json({**values, "cell": cell, "invariance": invariance})


def narrowed(cells: list[Cell], only: Iterable[str]) -> list[Cell]:
    """Return the cells that pass every filter, such as "method=lila,plain"."""
    for text in only:
        name, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"a filter must read name=value, such as method=lila; got '{text}'.")
        choose("filter", name, FILTERS)
        there = {str(getattr(cell, name)) for cell in cells}
        wanted = {choose(name, value.strip(), there) for value in values.split(",")}
        cells = [cell for cell in cells if str(getattr(cell, name)) in wanted]
    return cells


def append(path: Path, result: Result) -> None:
    """Add one line to a results file, on the disk before this returns."""
    line = json.dumps(result.to_json(), allow_nan=False, separators=(",", ":")).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        cut_short = path.is_file() and path.read_bytes()[-1:] not in (b"", b"\n")
        with path.open("ab") as file:
            # After a line that was cut short begin a new one. One write, so that two processes may share the file.
            file.write(b"\n" + line if cut_short else line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}. Choose a folder with --out.") from error


def read(paths: Iterable[Path]) -> dict[str, Result]:
    """Return all results by the key of their cell; of two with one key the later.

    A line that was cut short, or that another version wrote, counts as missing: its cell is run again.
    """
    found = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
            try:
                result = Result.from_json(json.loads(line))
            except (ValueError, TypeError, KeyError, AuguryError):
                continue
            found[result.key] = result
    return found
