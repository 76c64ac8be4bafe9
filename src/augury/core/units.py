"""Units in which widths are shown.

A width eta is a plain number (radians, normalised coordinates, a log-scale). A `Unit` converts it to degrees,
pixels or a factor, and back. The sign of eta carries no meaning: the noise is symmetric.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """How a width is shown: a symbol, and the conversion in both directions."""

    symbol: str
    """What follows the number: "deg", "px", "factor", or "" for a plain number."""
    to_person: Callable[[float], float]
    """From a non-negative eta to the number shown."""
    from_person: Callable[[float], float]


def scaled(symbol: str, per_eta: float) -> Unit:
    return Unit(symbol, lambda eta: eta * per_eta, lambda value: value / per_eta)


PLAIN = scaled("", 1.0)
DEGREES = scaled("deg", 180.0 / math.pi)
FACTOR = Unit("factor", math.exp, math.log)
PER_CENT = scaled("%", 100.0)
"""A probability or a share."""
SIGMA = Unit("px", math.sqrt, lambda sigma: sigma**2)
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
