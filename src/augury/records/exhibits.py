"""What a run leaves to be looked at: pictures, orbits with the model's answers, errors. Plain data, free of torch.

views/exhibits.json     the record `Exhibits`
views/*.png, *.jpg      the pictures it names
views/beside.json       another model's answers on the same orbits, where one was trained to compare
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from augury.records.results import Record

VIEWS, EXHIBITS, BESIDE = "views", "exhibits.json", "beside.json"
"""The folder, and the records in it."""
AUDIT, WORST = "audit.json", "worst.json"
"""The record of an audit, and what it leaves among the views."""
BOX = 1000
"""Drawings live in a square of this side, y downwards."""
STYLES = ("picture", "line", "dots")


@dataclass(frozen=True)
class Gallery(Record):
    """Frames of one size in rows and columns: pictures in one file, or drawings as numbers."""

    rows: int
    """How many rows."""
    columns: int
    """Frames in each."""
    style: str
    """One of `STYLES`."""
    file: str | None = None
    """The picture that holds all frames edge to edge, for style "picture"."""
    width: int = BOX
    """Width of a frame."""
    height: int = BOX
    """Height of a frame."""
    strokes: Sequence[Any] = ()
    """[row][column][stroke]: x0, y0, x1, y1, ... whole numbers in a frame, for lines and dots."""
    backdrop: Sequence[Any] = ()
    """[class]: x0, y0, ... of dots that stand behind every frame."""


@dataclass(frozen=True)
class Example(Record):
    """One input that is shown."""

    index: int
    """Its place in the set it was drawn from."""
    label: str | None = None
    """Its class, where it has one."""
    target: Sequence[float] = ()
    """Its first targets, for regression."""


@dataclass(frozen=True)
class Route(Record):
    """A way through the orbit of an input: one frame after the other."""

    name: str
    """The width that is moved, or "all widths together"."""
    unit: str
    """Its unit; "" for a plain number, "element" for a finite group."""
    at: Sequence[float]
    """Where on the way each frame is, in that unit."""
    learned: float | None
    """The learned width, within which the model was averaged; None where all move together."""
    frames: Gallery
    """A row for each example, a column for each step."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Route":
        """Rebuild the record and its frames."""
        return super().from_json({**values, "frames": Gallery.from_json(values["frames"])})


@dataclass(frozen=True)
class Answers(Record):
    """What a model says along every route: [route][example][step]."""

    model: str
    """Which model."""
    classes: Sequence[Any] = ()
    """The likeliest classes, likeliest first; at most three."""
    chances: Sequence[Any] = ()
    """Their probabilities."""
    truth: Sequence[Any] = ()
    """The probability of the example's own class."""
    values: Sequence[Any] = ()
    """The first outputs, for regression."""


@dataclass(frozen=True)
class Exhibits(Record):
    """All that is shown of a run."""

    kind: str
    """Kind of the data: "image", "signal", "points", "coordinates", "features"."""
    task: str
    """"classification" or "regression"."""
    part: str
    """The part of the data that the examples come from: "test", or "train" where there is no test set."""
    class_names: Sequence[str]
    """Names of the classes."""
    examples: tuple[Example, ...]
    """What is shown, drawn at random, from different classes where there are some."""
    routes: tuple[Route, ...]
    """Ways through their orbits."""
    answers: Answers
    """What the model says there."""
    draws: Gallery | None = None
    """A row for each example: as it is in the data, then draws from the learned distribution."""
    epoch: int = 0
    """The epoch whose state is shown: the one that was kept."""
    tested: int = 0
    """Test inputs behind what follows."""
    confusion: Sequence[Any] = ()
    """[true class][answer]: how many; left out where there are very many classes."""
    confused: Sequence[Any] = ()
    """[true class, answer, how many] of the most frequent mistakes."""
    pairs: Sequence[Any] = ()
    """[target, prediction] of the first output for some test inputs, for regression."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Exhibits":
        """Rebuild the record and all that it holds."""
        inner = {
            "examples": tuple(Example.from_json(example) for example in values["examples"]),
            "routes": tuple(Route.from_json(route) for route in values["routes"]),
            "answers": Answers.from_json(values["answers"]),
            "draws": None if values.get("draws") is None else Gallery.from_json(values["draws"]),
        }
        return super().from_json({**values, **inner})
