"""The last step of every reader: labels become class indices from 0, or targets [N, D]."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.files import Progress, silent
from augury.data.dataset import TASKS, Dataset, check_finite, check_lengths, inputs_in_words
from augury.data.rows import Rows, taken
from augury.data.split import split

MANY_CLASSES = 20  # above so many different numbers, with fewer than three examples each, labels may be targets


@dataclass(frozen=True, eq=False)
class Part:
    """What a reader found in one place: a training set, a test set, the two together, or inputs without labels."""

    x: Tensor | Rows  # inputs, float32, in the layout of their kind
    y: np.ndarray  # labels or targets as read: integers, floats or text
    skipped: tuple[str, ...] = ()  # here and below: as in `Dataset`
    layout: str = ""
    scaling: str = ""
    kind: str = "image"
    source: str = ""

    def describe(self) -> str:
        """Return one line that says what was read where there are no labels."""
        words = f"{len(self.x)} {inputs_in_words(self.kind, tuple(self.x.shape[1:]), self.layout)}"
        skipped = f"{len(self.skipped)} file{'s' * (len(self.skipped) > 1)} skipped" if self.skipped else ""
        return "; ".join(part for part in (words, self.scaling, "no labels", skipped) if part)


@dataclass(frozen=True)
class Options:
    """How to read data and make a data set of them; the fields are those of `augury.load`."""

    task: str | None = None
    test_fraction: float = 0.2
    seed: int = 0
    kind: str | None = None
    size: tuple[int, int] | None = None
    side: int | None = None
    skip_bad: bool = False
    progress: Progress = silent


def assemble(
    train: Part,
    test: Part | None,
    options: Options,
    *,
    source: str,
    class_names: tuple[str, ...] = (),
    remark: str = "",
) -> Dataset:
    """Encode the labels, split if there is no test set, and check everything."""
    for name, part in (("data" if test is None else "train", train), ("test", test)):
        if part is not None:  # a split would hide these: lengths, and which example is not finite
            check_lengths(part.x, part.y, name)
            check_finite(part.x, name, "inputs")
            if part.y.dtype.kind == "f":
                what = "targets" if options.task == "regression" or part.y.ndim > 1 else "labels"
                check_finite(torch.from_numpy(part.y), name, what)
    if len(train.x) == 0:
        raise InputError(f"the training set must hold at least one example; got none ({source}).")
    task = infer_task(train.y, options.task)
    y_test, names = train.y[:0] if test is None else test.y, class_names
    if task == "regression":
        y, y_test, names = regression_targets(train.y), regression_targets(y_test), ()
        check_spread(train.y, y)
    else:
        y, y_test, names = encode(class_labels(train.y), class_labels(y_test), names)
        only = ", ".join(names[i] for i in np.setdiff1d(y_test, y) if 0 <= i < len(names))
        remark = "; ".join(filter(None, (remark, only and f"not in training: {only}")))
    if test is None:
        keep, aside = split(y, options.test_fraction, options.seed, by_class=task == "classification")
        parts = (
            taken(train.x, keep), torch.from_numpy(y[keep]), taken(train.x, aside), torch.from_numpy(y[aside]),
        )  # fmt: skip
    else:
        parts = train.x, torch.from_numpy(y), test.x, torch.from_numpy(y_test)
    return Dataset(
        *parts,
        kind=train.kind,
        task=task,
        class_names=names,
        source=source,
        skipped=train.skipped + (test.skipped if test else ()),
        layout=train.layout,
        scaling=train.scaling,
        remark=remark,
        split=test is None,
    )


def infer_task(y: np.ndarray, task: str | None = None) -> str:
    """Return the task, as stated or else from the labels; raise where that is ambiguous."""
    if task is not None:
        return choose("task", task, TASKS)
    if _one_hot(y):
        raise InputError(
            f"labels [N, {y.shape[1]}] with a single 1 in each row look one-hot. Take y.argmax(1), or say "
            f"task='classification' (which does so) or task='regression'."
        )
    if y.dtype.kind == "f":
        if y.ndim >= 2:
            return "regression"
        _whole(y)
    different = len(np.unique(y)) if y.dtype.kind in "iuf" else 0
    if different > MANY_CLASSES and 3 * different > len(y):
        raise InputError(
            f"{len(y)} labels of {different} different numbers can be classes or targets. Say "
            f"task='regression' or task='classification' (--task ...)."
        )
    return "classification"


def _one_hot(y: np.ndarray) -> bool:
    if y.ndim != 2 or y.shape[1] < 2 or y.dtype.kind not in "biuf" or not len(y):
        return False
    return bool(((y == 0) | (y == 1)).all() and (y.sum(1) == 1).all())


def _whole(y: np.ndarray) -> np.ndarray:
    """Return float labels as integers, or raise."""
    with np.errstate(invalid="ignore", over="ignore"):  # signalling NaN; 2^53 as float16
        bad = np.flatnonzero(~np.isfinite(y) | (y != np.round(y)) | (np.abs(y) > 2**53))
    if len(bad):
        raise InputError(
            f"class labels must be integers; got {y.dtype}, with {y[bad[0]]:g} at position {bad[0]}. "
            f"For real targets, say task='regression' (--task regression)."
        )
    return y.astype(np.int64)


def class_labels(y: np.ndarray) -> np.ndarray:
    """Return class labels as a flat array of integers or text."""
    if _one_hot(y):
        y = y.argmax(1)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        if not len(y):
            return np.zeros(0, np.int64)
        raise InputError(
            f"class labels must be one per example, [N]; got shape {list(y.shape)}. "
            f"From one-hot rows take the argmax; for real targets, say task='regression'."
        )
    if y.dtype.kind == "S":
        return np.char.decode(y, "utf-8", "replace")
    return _whole(y) if y.dtype.kind == "f" else y if y.dtype.kind == "U" else y.astype(np.int64)


def encode(
    y_train: np.ndarray, y_test: np.ndarray, names: tuple[str, ...] = ()
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return class indices from 0, and the name of each class.

    Integers with names given are indices already. Otherwise the classes are the distinct labels in their order.
    """
    text = y_train.dtype.kind == "U"
    if len(y_test) and (y_test.dtype.kind == "U") != text:
        raise InputError(f"training and test labels must be of one type; got {y_train.dtype} and {y_test.dtype}.")
    if names and not text:
        return y_train, y_test, names
    classes = np.unique(y_train if text or not len(y_test) else np.concatenate([y_train, y_test]))
    unseen = sorted(set(y_test.tolist()) - set(classes.tolist()))
    if unseen:
        raise InputError(
            f"every test class must occur in training; '{unseen[0]}' does not. "
            f"Training has {', '.join(map(str, classes[:10].tolist()))}{', ...' if len(classes) > 10 else ''}."
        )
    names = tuple(map(str, classes.tolist()))
    return np.searchsorted(classes, y_train), np.searchsorted(classes, y_test), names


def check_spread(y: np.ndarray, kept: np.ndarray) -> None:
    """Raise if targets are all equal, or differ by less than their type holds."""
    exact = np.asarray(y, np.float64).reshape(kept.shape)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float32: infinite, and refused as such
        spread = exact.std(0)
    if not spread.any():
        raise InputError(f"targets must differ; all targets are {exact.flat[0]:g}, so there is nothing to learn.")
    if np.isfinite(kept).all() and (np.abs(exact - kept).max(0) > 0.01 * spread)[spread > 0].any():
        raise InputError(
            f"targets must differ by more than float32 can hold; they are {exact.mean():g} with a spread of "
            f"{spread.max():g}. Subtract a constant: y - y.mean()."
        )


def regression_targets(y: np.ndarray) -> np.ndarray:
    """Return targets as float32 [N, D]."""
    if y.dtype.kind not in "biuf":
        raise InputError(f"regression targets must be numbers; got dtype {y.dtype}.")
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float32: infinite, and refused as such
        return np.array(y, dtype=np.float32).reshape(len(y), -1) if y.size else np.zeros((len(y), 1), np.float32)
