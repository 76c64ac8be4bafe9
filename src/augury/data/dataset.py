"""The one record that every reader returns and every method takes, checked once when it is made."""

import math
from collections.abc import Mapping, Sized
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.rng import generator
from augury.data.rows import Rows, chunks, taken

SHAPES = {
    "image": "[N, C, H, W]",
    "signal": "[N, C, T]",
    "points": "[N, P, 3]",
    "coordinates": "[N, 2]",
    "features": "[N, ...]",
}
"""The kinds of input, and the shape of N of them."""

SMALLEST_IMAGE = 4  # pixels along a side below which a rotation or a shift means nothing

TASKS = ("classification", "regression")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs and targets for training and test, checked once when made.

    Pixels are float32 in [0, 1]; class labels are int64 from 0; regression targets are float32 [N, D].
    """

    x_train: Float[Tensor | Rows, "N ..."]
    """Training inputs: a tensor, or rows on disk, which give one when indexed."""
    y_train: Shaped[Tensor, "N ..."]
    """Training labels or targets."""
    x_test: Float[Tensor | Rows, "M ..."]
    """Test inputs; none (M = 0) is allowed."""
    y_test: Shaped[Tensor, "M ..."]
    """Test labels or targets."""
    kind: str = "image"
    """A key of `SHAPES`."""
    task: str = "classification"
    """One of `TASKS`."""
    class_names: tuple[str, ...] = ()
    """A name for each class. Default: "0", "1", ...; empty for regression."""
    source: str = "arrays"
    """Description of the source of the data."""
    planted: Mapping[str, float] = field(default_factory=dict)
    """True widths in their units by generator, if planted."""
    skipped: tuple[str, ...] = ()
    """Files that could not be read and were skipped (`skip_bad`)."""
    layout: str = ""
    """What a reader did to the shape: "6 sizes, cropped", "channels were last"."""
    scaling: str = ""
    """What a reader did to the values: "scaled to 0..1"."""
    remark: str = ""
    """What a reader did with further parts: "val as test set", "val not used"."""
    split: bool = False
    """Whether the test examples were split off by a reader (`test_fraction`)."""
    closed: bool = False
    """Whether signals are closed, as outlines are: no sample is the first."""
    target_mean: tuple[float, ...] = ()
    """Mean of the training targets in the user's units, if they were standardised."""
    target_scale: tuple[float, ...] = ()
    """Their standard deviation."""

    def __post_init__(self) -> None:
        choose("kind", self.kind, SHAPES)
        choose("task", self.task, TASKS)
        if len(self.x_train) == 0:
            raise InputError("the training set must hold at least one example; got none.")
        for part in ("train", "test"):
            check_pair(getattr(self, f"x_{part}"), getattr(self, f"y_{part}"), self.kind, self.task, part)
        if len(self.x_test) and self.x_test.shape[1:] != self.x_train.shape[1:]:
            raise InputError(
                f"training and test inputs must have one shape; got {list(self.x_train.shape[1:])} "
                f"and {list(self.x_test.shape[1:])}. Resize one of them."
            )
        if self.task == "classification":
            self._check_classes()

    def _check_classes(self) -> None:
        if not self.class_names:
            highest = max(int(y.max()) for y in (self.y_train, self.y_test) if len(y))
            object.__setattr__(self, "class_names", tuple(map(str, range(highest + 1))))
        C = len(self.class_names)
        for part, y in (("train", self.y_train), ("test", self.y_test)):
            if len(y) and not 0 <= int(y.min()) <= int(y.max()) < C:
                raise InputError(
                    f"{part}: labels must lie between 0 and {C - 1}, one for each class name; "
                    f"got {int(y.min())} to {int(y.max())}."
                )
        if C < 2:
            raise InputError(
                f"classification needs at least two classes; got one only ('{self.class_names[0]}'). "
                f"With a single class there is nothing to learn."
            )

    def __repr__(self) -> str:
        return f"Dataset({self.source}: {self.describe()})"

    def describe(self) -> str:
        """Return one line that says what was read.

        Such as "48 + 12 images, 3 x 32 x 32 (6 sizes, cropped), 2 classes: cat, dog; scaled to 0..1".
        """
        count = f"{len(self.x_train)} + {len(self.x_test)}" if len(self.x_test) else str(len(self.x_train))
        if self.task == "classification":
            few = ", ".join(self.class_names[:10]) + (", ..." if self.n_outputs > 10 else "")
            outputs = f"{self.n_outputs} classes: {few}"
        else:
            y = self.to_units(self.y_train)
            outputs = f"{self.n_outputs} target{'s' * (self.n_outputs > 1)} from {y.min():g} to {y.max():g}"
        words = self.closed * "closed " + inputs_in_words(self.kind, self.input_shape, self.layout)
        line = f"{count} {words}, {outputs}"
        skipped = f"{len(self.skipped)} file{'s' * (len(self.skipped) > 1)} skipped" if self.skipped else ""
        none = "" if len(self.x_test) else "no test set"
        return "; ".join(part for part in (line, self.scaling, none, self.remark, skipped) if part)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.x_train.shape[1:])

    @property
    def n_outputs(self) -> int:
        """How many outputs a network needs: classes, or dimensions of the target."""
        return len(self.class_names) if self.task == "classification" else self.y_train.shape[1]

    def subset(self, n: int, seed: int = 0) -> "Dataset":
        """Return the record with n training examples drawn at random; the test set stays whole.

        With one seed, a smaller subset is the beginning of a larger one.
        """
        if not 1 <= n <= len(self.x_train):
            raise InputError(f"subset must be between 1 and {len(self.x_train)} (all); got {n}.")
        keep = torch.randperm(len(self.x_train), generator=generator(seed))[:n]
        return replace(self, x_train=taken(self.x_train, keep), y_train=self.y_train[keep])

    def standardised(self) -> "Dataset":
        """Return the record with regression targets of mean 0 and standard deviation 1 in training.

        For classification, or if it is standardised already, it is itself. `to_units` brings outputs back.
        """
        if self.task == "classification" or self.target_scale:
            return self
        y = self.y_train.double()
        spread = y.std(0, correction=0)
        mean, scale = y.mean(0), torch.where(spread > 0, spread, 1.0)
        parts = {f"y_{p}": ((getattr(self, f"y_{p}") - mean) / scale).float() for p in ("train", "test")}
        return replace(self, **parts, target_mean=tuple(mean.tolist()), target_scale=tuple(scale.tolist()))

    def to_units(self, outputs: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        """Return targets or outputs of a network trained on them, mean + scale * outputs, in the user's units.

        Where nothing was standardised, these are the outputs themselves.
        """
        if not self.target_scale:
            return outputs
        mean, scale = (torch.tensor(v, dtype=torch.float64) for v in (self.target_mean, self.target_scale))
        return (mean.to(outputs.device) + scale.to(outputs.device) * outputs).to(outputs)

    @property
    def log_scale(self) -> float:
        """What to subtract from a log-density per example of standardised targets for one in the user's units."""
        return math.fsum(math.log(scale) for scale in self.target_scale)


def inputs_in_words(kind: str, shape: tuple[int, ...], layout: str = "") -> str:
    """Write "images, 3 x 32 x 32 (6 sizes, cropped)"."""
    what = {
        "image": f"images, {' x '.join(map(str, shape))}",
        "signal": f"signals, {shape[0]} channel{'s' * (shape[0] > 1)} x {shape[-1]} steps",
        "points": f"point clouds, {shape[0]} x 3",
        "coordinates": "points in the plane",
        "features": f"inputs of {' x '.join(map(str, shape))} numbers",
    }[kind]
    return what + (f" ({layout})" if layout else "")


def check_shape(x: Tensor | Rows, kind: str, part: str) -> None:
    """Raise unless the inputs have the shape of their kind."""
    shape = list(x.shape)
    fits = {
        "image": x.ndim == 4,
        "signal": x.ndim == 3,
        "points": x.ndim == 3 and shape[-1] == 3,
        "coordinates": x.ndim == 2 and shape[-1] == 2,
        "features": x.ndim >= 2,
    }[kind]
    if not fits:
        raise InputError(f"{part}: inputs of kind '{kind}' must be {SHAPES[kind]}; got {shape}. Reshape them.")
    if kind == "image" and min(shape[-2:]) < SMALLEST_IMAGE:
        raise InputError(
            f"{part}: images must be at least {SMALLEST_IMAGE} pixels on each side; got {shape[-2]} x {shape[-1]}. "
            f"Images are [N, C, H, W]."
        )


def check_finite(x: Tensor | Rows, part: str, what: str) -> None:
    """Raise if a value is NaN or infinite, and say in which example."""
    if isinstance(x, Rows) and x.finite:
        return
    bad, start = [], 0
    for some in chunks(x):
        # A sum is finite only if every term is: one quick pass, and a mask of the size of a chunk only where it is not.
        if not torch.isfinite(some.sum()):
            wrong = (~torch.isfinite(some)).reshape(len(some), -1).any(1).nonzero().flatten()
            bad += (start + wrong).tolist()
        start += len(some)
    if bad:
        raise InputError(
            f"{part}: {what} must be finite; example {bad[0]} holds NaN or infinity "
            f"({len(bad)} such in all). Remove or repair them."
        )
    if isinstance(x, Rows):
        x.finite = True


def check_lengths(x: Sized, y: Sized, part: str) -> None:
    """Raise unless there is one label for each input."""
    if len(x) != len(y):
        raise InputError(
            f"{part}: inputs and labels must be of one length; got {len(x)} and {len(y)}. "
            f"Are they from the same file, in the same order?"
        )


def check_pair(x: Tensor | Rows, y: Tensor, kind: str, task: str, part: str) -> None:
    """Raise unless inputs and targets of one part fit their kind, their task and each other."""
    check_lengths(x, y, part)
    if len(x) == 0:
        return
    if not x.is_floating_point():
        raise InputError(f"{part}: inputs must be floats; got {x.dtype}. `load` turns integer pixels into [0, 1].")
    check_shape(x, kind, part)
    check_finite(x, part, "inputs")
    if task == "regression":
        if not y.is_floating_point() or y.ndim != 2:
            raise InputError(f"{part}: regression targets must be floats [N, D]; got {y.dtype} of {list(y.shape)}.")
        check_finite(y, part, "targets")
    elif y.dtype != torch.int64:
        raise InputError(
            f"{part}: class labels must be integers; got {y.dtype}. For real targets, say task='regression'."
        )
    elif y.ndim != 1:
        raise InputError(f"{part}: class labels must be one number per example, [N]; got {list(y.shape)}.")
