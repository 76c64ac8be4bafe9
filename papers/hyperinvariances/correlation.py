"""Spearman's rank correlation: how far one thing is a monotone function of another."""

import math
from collections.abc import Sequence


def ranks(values: Sequence[float | int]) -> list[float]:
    """Return the rank of each value, ties sharing their mean rank."""
    order = sorted(values)
    first = {value: order.index(value) for value in set(values)}
    return [first[value] + (order.count(value) + 1) / 2 for value in values]


def spearman(x: Sequence[float | int], y: Sequence[float | int]) -> float:
    """Return the correlation of the ranks."""
    a, b = ranks(x), ranks(y)
    mean = (len(a) + 1) / 2
    across = math.fsum((p - mean) * (q - mean) for p, q in zip(a, b, strict=True))
    size = math.sqrt(math.fsum((p - mean) ** 2 for p in a) * math.fsum((q - mean) ** 2 for q in b))
    return across / size if size else 0.0
