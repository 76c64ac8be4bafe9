"""The last step of every reader: inputs and labels as they were read, made into a `Dataset`."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from augury.core.errors import InputError
from augury.data.checks import check_finite, check_lengths
from augury.data.dataset import Dataset
from augury.data.split import split
from augury.data.targets import class_labels, encode, infer_task, regression_targets


@dataclass(frozen=True, eq=False)
class Part:
    """What a reader found in one place: a training set, a test set, or the two together."""

    x: Tensor
    """Inputs, float32, in the layout of their kind."""
    y: np.ndarray
    """Labels or targets as they were kept: integers, floats or text."""
    skipped: tuple[str, ...] = ()
    """Files passed over."""


@dataclass(frozen=True)
class Options:
    """How to make a data set of what was read."""

    task: str | None = None
    """"classification" or "regression"; inferred from the labels where None."""
    test_fraction: float = 0.2
    """Share of the examples to set aside where there is no separate test set."""
    seed: int = 0
    """Seed of that split."""


def assemble(
    train: Part,
    test: Part | None,
    options: Options,
    *,
    kind: str,
    source: str,
    class_names: tuple[str, ...] = (),
) -> Dataset:
    """Encode the labels, split where there is no test set, and check everything."""
    _check(train, test, source)
    task = infer_task(train.y, options.task)
    y, y_test, names = _targets(task, train.y, train.y[:0] if test is None else test.y, class_names)
    if test is None:
        keep, aside = split(y, options.test_fraction, options.seed, by_class=task == "classification")
        parts = train.x[keep], torch.from_numpy(y[keep]), train.x[aside], torch.from_numpy(y[aside])
    else:
        parts = train.x, torch.from_numpy(y), test.x, torch.from_numpy(y_test)
    skipped = train.skipped + (test.skipped if test else ())
    return Dataset(*parts, kind=kind, task=task, class_names=names, source=source, skipped=skipped)


def _check(train: Part, test: Part | None, source: str) -> None:
    """Check what a split would hide: lengths, and which example is not finite, counted as the user counts."""
    for name, part in (("data" if test is None else "train", train), ("test", test)):
        if part is not None:
            check_lengths(part.x, part.y, name)
            check_finite(part.x, name, "inputs")
            if part.y.dtype.kind == "f" and part.y.ndim > 1:
                check_finite(torch.from_numpy(part.y), name, "targets")
    if len(train.x) == 0:
        raise InputError(f"the training set must hold at least one example; got none ({source}).")


def _targets(
    task: str, y: np.ndarray, y_test: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    if task == "regression":
        return regression_targets(y), regression_targets(y_test), ()
    return encode(class_labels(y), class_labels(y_test), names)
