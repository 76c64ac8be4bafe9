"""How a data set is split into training and test examples: by seed, or by the usual names of its parts."""

from collections.abc import Iterable

import numpy as np

from augury.core.errors import InputError


def split(labels: np.ndarray, test_fraction: float, seed: int, by_class: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the training and of the test examples, each in a random order.

    Every class gives `round(test_fraction * its size)` examples to the test set, and keeps at least one.
    """
    if not 0 <= test_fraction < 1:
        raise InputError(f"test_fraction must be at least 0 and below 1; got {test_fraction}. 0.2 sets a fifth aside.")
    rng = np.random.default_rng(seed)
    groups = [np.flatnonzero(labels == c) for c in np.unique(labels)] if by_class else [np.arange(len(labels))]
    train, test = [], []
    for group in groups:
        shuffled = rng.permutation(group)
        n = min(round(test_fraction * len(group)), len(group) - 1)
        test.append(shuffled[:n])
        train.append(shuffled[n:])
    return rng.permutation(np.concatenate(train)), rng.permutation(np.concatenate(test))


def split_arrays(x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Split a named set by class into 80 % and 20 %, the same for all seeds."""
    train, test = split(y, test_fraction=0.2, seed=0)
    return {"x_train": x[train], "y_train": y[train], "x_test": x[test], "y_test": y[test]}


PARTS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing", "eval"),
}
"""Usual names of the parts of a data set."""


def named_splits(names: Iterable[str]) -> dict[str, str]:
    """Return the names of the parts "train", "validation" and "test", in any case."""
    lower = {str(name).lower(): name for name in names}
    found = {part: next((lower[n] for n in usual if n in lower), None) for part, usual in PARTS.items()}
    return {part: name for part, name in found.items() if name is not None}


def train_and_test(names: Iterable[str], place: str) -> tuple[str, str | None, str]:
    """Return the names of the training and the test part, and a remark on what else there is."""
    names = list(names)
    splits = named_splits(names)
    if "train" not in splits:
        raise InputError(f"{place} must hold train beside {' and '.join(splits.values())}; it does not.")
    test = splits.get("test") or splits.get("validation")
    unused = [str(name) for name in names if name not in (splits["train"], test)]
    said = [f"{test} as test set"] if test and "test" not in splits else []
    return splits["train"], test, "; ".join(said + ([f"{', '.join(unused)} not used"] if unused else []))
