"""Round numbers for axes."""

import math
from collections.abc import Sequence

Number = int | float


def ticks(low: Number, high: Number, most: int = 5) -> list[Number]:
    """Return round numbers between two numbers."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def span(values: Sequence[Number]) -> tuple[Number, Number]:
    """Return the range of numbers, made wider where they are all equal."""
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
