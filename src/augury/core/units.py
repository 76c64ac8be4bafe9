"""Units in which widths are shown.

A width eta is a plain number (radians, normalised coordinates, a log-scale). A `Unit` converts it to degrees,
pixels or a factor, and back. The sign of eta carries no meaning: the noise is symmetric.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
class Unit:
    """How a width is shown: a symbol, and the conversion in both directions."""

    symbol: str
    """What follows the number: "deg", "px", "factor", or "" for a plain number."""
    to_person: Callable[[float], float]
    """From a non-negative eta to the number shown."""
    from_person: Callable[[float], float]


def _times(factor: float, number: float) -> float:
    return number * factor


def _over(factor: float, number: float) -> float:
    return number / factor


def _squared(number: float) -> float:
    return number**2


def scaled(symbol: str, per_eta: float) -> Unit:  # no lambdas, here and below: they cannot be pickled
    return Unit(symbol, partial(_times, per_eta), partial(_over, per_eta))


PLAIN = scaled("", 1.0)
DEGREES = scaled("deg", 180.0 / math.pi)
FACTOR = Unit("factor", math.exp, math.log)
PER_CENT = scaled("%", 100.0)
"""A probability or a share."""
SIGMA = Unit("px", math.sqrt, _squared)
"""A variance, shown as a standard deviation in pixels."""


def pixels(size: int) -> Unit:
    """Return pixels of an axis `size` pixels long whose coordinates run from -1 to 1."""
    return scaled("px", size / 2)


def samples(length: int) -> Unit:
    """Return samples of a signal of `length` samples whose time runs from -1 to 1."""
    return scaled("samples", length / 2)


@dataclass(frozen=True)
class WidthSpec:
    """The name, unit and largest sensible value of one width."""

    name: str
    """The generator's name: "rotation", "translate_x", "brightness"."""
    unit: Unit = PLAIN
    upper: float = math.inf
    """Largest eta that means anything new: pi for a rotation."""
