"""."""

import numpy as np

from augury.core.errors import InputError


def split(
    labels: np.ndarray, test_fraction: float, seed: int, by_class: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the training and of the test examples, each in a random order.

    Every class gives `round(test_fraction * its size)` examples to the test set, and keeps at least one.
    """
    if not 0 <= test_fraction < 1:
        raise InputError(
            f"test_fraction must be at least 0 and below 1; got {test_fraction}. 0.2 sets a fifth aside."
        )
    rng = np.random.default_rng(seed)
    groups = (
        [np.flatnonzero(labels == c) for c in np.unique(labels)] if by_class else [np.arange(len(labels))]
    )
    train, test = [], []
    for group in groups:
        shuffled = rng.permutation(group)
        n = min(round(test_fraction * len(group)), len(group) - 1)
        test.append(shuffled[:n])
        train.append(shuffled[n:])
    return rng.permutation(np.concatenate(train)), rng.permutation(np.concatenate(test))
