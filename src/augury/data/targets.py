"""From labels as people keep them (numbers, text) to class indices from 0, or to regression targets [N, D]."""

import numpy as np

from augury.core.errors import InputError, choose

TASKS = ("classification", "regression")


def infer_task(y: np.ndarray, task: str | None = None) -> str:
    """Say what the task is, from the labels, unless the user said it."""
    if task is not None:
        return choose("task", task, TASKS)
    if y.dtype.kind == "f":
        if y.ndim >= 2:
            return "regression"
        _whole(y)
    return "classification"


def _whole(y: np.ndarray) -> np.ndarray:
    """Return float labels as integers, or raise."""
    bad = np.flatnonzero(~np.isfinite(y) | (y != np.round(y)))
    if len(bad):
        raise InputError(
            f"class labels must be integers; got {y.dtype}, with {y[bad[0]]:g} at position {bad[0]}. "
            f"For real targets, say task='regression'."
        )
    return y.astype(np.int64)


def class_labels(y: np.ndarray) -> np.ndarray:
    """Return class labels as a flat array of integers or text."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise InputError(
            f"class labels must be one per example, [N]; got shape {list(y.shape)}. "
            f"From one-hot rows take the argmax; for real targets, say task='regression'."
        )
    if y.dtype.kind == "S":
        return np.char.decode(y, "utf-8")
    return _whole(y) if y.dtype.kind == "f" else y if y.dtype.kind == "U" else y.astype(np.int64)


def encode(
    y_train: np.ndarray, y_test: np.ndarray, names: tuple[str, ...] = ()
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return class indices from 0, and the name of each class.

    Integers with names given are indices already. Otherwise the classes are the distinct labels in their order.
    """
    text = y_train.dtype.kind == "U"
    if len(y_test) and (y_test.dtype.kind == "U") != text:
        raise InputError(
            f"training and test labels must be of one type; got {y_train.dtype} and {y_test.dtype}."
        )
    if names and not text:
        return y_train, y_test, names
    found = y_train if text or not len(y_test) else np.concatenate([y_train, y_test])
    classes = np.unique(found)
    unseen = sorted(set(y_test.tolist()) - set(classes.tolist()))
    if unseen:
        raise InputError(
            f"every test class must occur in training; '{unseen[0]}' does not. "
            f"Training has {', '.join(map(str, classes[:10].tolist()))}{', ...' if len(classes) > 10 else ''}."
        )
    names = tuple(map(str, classes.tolist()))
    return np.searchsorted(classes, y_train), np.searchsorted(classes, y_test), names


def regression_targets(y: np.ndarray) -> np.ndarray:
    """Return targets as float32 [N, D]."""
    if y.dtype.kind not in "biuf":
        raise InputError(f"regression targets must be numbers; got dtype {y.dtype}.")
    return np.array(y, dtype=np.float32).reshape(len(y), -1) if y.size else np.zeros((len(y), 1), np.float32)
