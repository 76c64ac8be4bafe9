"""One run of a grid as plain data, and what came of it. Free of torch."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from augury.core.errors import InputError, choose
from augury.records.results import Invariance, Record

ORIGINAL = "original"
"""What the data are called when nothing is planted in them."""

FILTERS = ("data", "variant", "subset", "model", "method", "seed")
"""By what a grid can be narrowed."""


@dataclass(frozen=True)
class Cell(Record):
    """One run: the data, the network, the method, the seed and every setting that is not a default."""

    data: str
    """Name of the data set."""
    variant: str
    """The truth planted in it, or "original"."""
    model: str
    """Name of the network."""
    method: str
    """Name of the method; what follows a "/" only tells rows of a table apart ("lila/ef")."""
    seed: int
    """Seed of data and run alike."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `LearnConfig`, of JSON types."""
    subset: int | None = None
    """Training examples, drawn at random; all where None."""
    test_images: int | None = None
    """Test examples, drawn at random, the same for every seed; all where None."""

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
    """The cell's key."""
    cell: Cell
    """The cell."""
    invariance: Invariance
    """What was learned."""
    epoch: int
    """The epoch whose state was kept."""
    N: int
    """Training examples."""
    curves: dict[str, list[float | None]] = field(default_factory=dict)
    """By epoch: loss, log_evidence, and every width under its name."""
    machine: dict[str, Any] = field(default_factory=dict)
    """Cores, memory, threads: what the seconds mean."""
    extra: dict[str, Any] = field(default_factory=dict)
    """What only some items measure."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Result":
        """Rebuild the record and what it holds."""
        parts = {
            "cell": Cell.from_json(values["cell"]),
            "invariance": Invariance.from_json(values["invariance"]),
        }
        return super().from_json({**values, **parts})


def narrowed(cells: list[Cell], only: list[str]) -> list[Cell]:
    """Return the cells that pass every filter."""
    for text in only:
        name, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"a filter must read name=value, such as method=lila; got '{text}'.")
        choose("filter", name, FILTERS)
        there = {str(getattr(cell, name)) for cell in cells}
        wanted = {choose(name, value.strip(), there) for value in values.split(",")}
        cells = [cell for cell in cells if str(getattr(cell, name)) in wanted]
    return cells
