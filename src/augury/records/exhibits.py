"""What a report shows of a run: images, orbits with the model's predictions, errors. Plain data, free of torch.

views/exhibits.json     the record `Exhibits`
views/*.png, *.jpg      its images
views/beside.json       the baseline's predictions on the same orbits, if one was trained
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from augury.core.errors import InputError
from augury.records.record import Count, Name, OneOf, Positive, Record, Share

VIEWS, EXHIBITS, BESIDE = "views", "exhibits.json", "beside.json"  # the folder, and the records in it
AUDIT, WORST = "audit.json", "worst.json"  # the record of an audit, and its file in the views
BOX = 1000  # side of the square of a drawing; y is downwards
STYLES = ("picture", "line", "dots")

Numbers = Sequence[int]


@dataclass(frozen=True)
class Gallery(Record):
    """Frames of one size in rows and columns: pictures in one file, or drawings as numbers."""

    rows: Positive
    columns: Positive  # frames in each
    style: Annotated[str, OneOf(STYLES)]  # one of `STYLES`
    file: Name | None = None  # the picture that holds all frames edge to edge, for style "picture"
    width: Positive = BOX  # width of a frame
    height: Positive = BOX  # height of a frame
    strokes: Sequence[Sequence[Sequence[Numbers]]] = ()
    """[row][column][stroke]: x0, y0, x1, y1, ... whole numbers in a frame, for lines and dots."""
    backdrop: Sequence[Numbers] = ()  # [class]: x0, y0, ... of dots behind every frame

    def check(self) -> None:
        """Raise unless there is a frame for every row and column."""
        flat = [*self.backdrop, *(stroke for row in self.strokes for frame in row for stroke in frame)]
        drawn = len(self.strokes) == self.rows and all(len(row) == self.columns for row in self.strokes)
        if (self.file is None) == (self.style == "picture") or not (self.file or drawn):
            raise InputError(f"a gallery must hold {self.rows} x {self.columns} frames, as a file or as strokes.")
        if any(len(numbers) % 2 for numbers in flat):
            raise InputError("a stroke must hold pairs of numbers.")


@dataclass(frozen=True)
class Example(Record):
    """One input that is shown."""

    index: Count  # its place in the set it was drawn from
    label: str | None = None  # its class, if it has one
    target: Sequence[float] = ()  # its first targets, for regression


@dataclass(frozen=True)
class Route(Record):
    """A way through the orbit of an input: one frame after the other."""

    name: str  # the width that is moved, or "all widths together"
    unit: str  # its unit; "" for a plain number, "element" for a finite group
    at: Sequence[float]  # where on the way each frame is, in that unit
    learned: float | None  # the learned width, over which the model was averaged; None if all move together
    frames: Gallery  # a row for each example, a column for each step

    def check(self) -> None:
        """Raise unless every step has a place and a column."""
        if len(self.at) != self.frames.columns or (self.learned is not None and self.at[0] == self.at[-1]):
            raise InputError(f"route '{self.name}' must say where each of its {self.frames.columns} frames is.")
        if self.unit == "factor" and min(*self.at, self.learned or 1.0) <= 0:
            raise InputError(f"the factors of route '{self.name}' must be positive.")


@dataclass(frozen=True)
class Answers(Record):
    """A model's predictions along every route: [route][example][step]."""

    model: str
    classes: Sequence[Sequence[Sequence[Sequence[Count]]]] = ()  # the most probable classes, in order; at most three
    chances: Sequence[Sequence[Sequence[Sequence[Share]]]] = ()  # their probabilities
    truth: Sequence[Sequence[Sequence[Share]]] = ()  # the probability of the example's own class
    values: Sequence[Sequence[Sequence[Sequence[float]]]] = ()  # the first outputs, for regression


@dataclass(frozen=True)
class Exhibits(Record):
    """All that is shown of a run."""

    kind: str  # kind of the data: "image", "signal", "points", "coordinates", "features"
    task: Annotated[str, OneOf(("classification", "regression"))]  # "classification" or "regression"
    part: Annotated[str, OneOf(("test", "train"))]
    """The part of the data that the examples come from: "test", or "train" without a test set."""
    class_names: Sequence[str]
    examples: tuple[Example, ...]  # the examples, drawn at random, from different classes if possible
    routes: tuple[Route, ...]  # ways through their orbits
    answers: Answers  # the model's predictions there
    draws: Gallery | None = None
    """A row for each example: as it is in the data, then draws from the learned distribution."""
    epoch: Count = 0  # the epoch whose state is shown: the one that was kept
    tested: Count = 0  # number of test inputs for the errors
    confusion: Sequence[Sequence[Count]] = ()  # [true class][prediction]: counts; empty for very many classes
    confused: Sequence[Sequence[Count]] = ()  # [true class, prediction, count] of the most frequent errors
    pairs: Sequence[Sequence[float]] = ()
    """[target, prediction] of the first output for some test inputs, for regression."""

    def check(self) -> None:
        """Raise unless examples, frames, answers and classes fit one another."""
        rows, C = len(self.examples), len(self.class_names)
        galleries = [route.frames for route in self.routes] + ([] if self.draws is None else [self.draws])
        if any(gallery.rows != rows for gallery in galleries):
            raise InputError(f"there must be a row of frames for each of {rows} examples.")
        for said in (self.answers.classes, self.answers.chances, self.answers.truth, self.answers.values):
            if said and [[len(e) for e in r] for r in said] != [[len(r.at)] * rows for r in self.routes]:
                raise InputError("there must be an answer for each step of each example on each route.")
        if self.confusion and [len(row) for row in self.confusion] != [C] * C:
            raise InputError(f"a confusion matrix of {C} classes must be {C} x {C}.")
        if any(len(one) != 3 or max(one[:2]) >= C for one in self.confused):
            raise InputError(f"a mistake must be two of {C} classes and a count.")
        if any(len(pair) != 2 for pair in self.pairs):
            raise InputError("a pair must be a target and a prediction.")
