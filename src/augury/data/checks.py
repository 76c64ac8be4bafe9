"""What must hold of inputs and targets. Checked once, when a `Dataset` is made."""

from collections.abc import Sized

import torch
from torch import Tensor

from augury.core.errors import InputError

SHAPES = {
    "image": "[N, C, H, W]",
    "signal": "[N, C, T]",
    "points": "[N, P, 3]",
    "coordinates": "[N, 2]",
    "features": "[N, ...]",
}
"""The kinds of input, and the shape of N of them."""

SMALLEST_IMAGE = 4
"""Pixels along a side below which a rotation or a shift means nothing."""


def check_shape(x: Tensor, kind: str, part: str) -> None:
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
        raise InputError(
            f"{part}: inputs of kind '{kind}' must be {SHAPES[kind]}; got {shape}. Reshape them."
        )
    if kind == "image" and min(shape[-2:]) < SMALLEST_IMAGE:
        raise InputError(
            f"{part}: images must be at least {SMALLEST_IMAGE} pixels on each side; got {shape[-2]} x {shape[-1]}. "
            f"If the channels come last and are not 1, 3 or 4, move them first: [N, C, H, W]."
        )


def check_finite(x: Tensor, part: str, what: str) -> None:
    """Raise if a value is NaN or infinite, and say in which example."""
    # A sum is finite only if every term is: one quick pass, and a mask of the size of the data only where it is not.
    if not torch.isfinite(x.sum()):
        bad = (~torch.isfinite(x)).reshape(len(x), -1).any(1).nonzero()
        if len(bad):
            raise InputError(
                f"{part}: {what} must be finite; example {int(bad[0, 0])} holds NaN or infinity "
                f"({len(bad)} such in all). Remove or repair them."
            )


def check_lengths(x: Sized, y: Sized, part: str) -> None:
    """Raise unless there is one label for each input."""
    if len(x) != len(y):
        raise InputError(
            f"{part}: inputs and labels must be of one length; got {len(x)} and {len(y)}. "
            f"Are they from the same file, in the same order?"
        )


def check_targets(y: Tensor, task: str, part: str) -> None:
    """Raise unless the targets fit the task."""
    if task == "classification":
        if y.dtype != torch.int64:
            raise InputError(
                f"{part}: class labels must be integers; got {y.dtype}. For real targets, say task='regression'."
            )
        if y.ndim != 1:
            raise InputError(
                f"{part}: class labels must be one number per example, [N]; got {list(y.shape)}."
            )
        return
    if not y.is_floating_point() or y.ndim != 2:
        raise InputError(
            f"{part}: regression targets must be floats [N, D]; got {y.dtype} of {list(y.shape)}."
        )
    check_finite(y, part, "targets")


def check_classes(y: Tensor, n_classes: int, part: str) -> None:
    """Raise unless every label is one of 0 to n_classes - 1."""
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < n_classes:
        raise InputError(
            f"{part}: labels must lie between 0 and {n_classes - 1}, one for each class name; "
            f"got {int(y.min())} to {int(y.max())}."
        )


def check_pair(x: Tensor, y: Tensor, kind: str, task: str, part: str) -> None:
    """Raise unless inputs and targets of one part fit their kind, their task and each other."""
    check_lengths(x, y, part)
    if len(x) == 0:
        return
    if not x.is_floating_point():
        raise InputError(
            f"{part}: inputs must be floats; got {x.dtype}. `load` turns integer pixels into [0, 1]."
        )
    check_shape(x, kind, part)
    check_finite(x, part, "inputs")
    check_targets(y, task, part)
