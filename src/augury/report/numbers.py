"""Numbers as text, and round numbers for axes."""

import math
from collections.abc import Sequence

UNITS = {"deg": "°", "px": " px", "%": " %", "factor": "", "": "", "element": ""}
"""Suffix of a number, by unit; any other unit follows after a space."""
NOTHING = "–"
FAR = 1e100  # numbers beyond, and those that are not finite, are not drawn: differences of larger ones overflow
Number = int | float


def amount(value: Number | None, unit: str) -> str:
    """Format a width or a position on an orbit."""
    if value is None:
        return NOTHING
    if unit == "factor":
        return f"×{value:.2f}"
    if unit == "element":
        return f"element {value:.0f}"
    digits = 1 if unit else 2
    text = f"{value:.{digits}f}{UNITS.get(unit, ' ' + unit)}".replace("-", "−")
    return text[1:] if text.startswith("−") and not any(c in text for c in "123456789") else text


def either_way(value: Number, unit: str) -> str:
    """Format a width with its ±."""
    return amount(value, unit) if unit in ("factor", "%") else f"±{amount(value, unit)}"


def interval(low: Number | None, high: Number | None, unit: str) -> str:
    if low is None:
        return NOTHING
    return f"at least {amount(low, unit)}" if high is None else f"{amount(low, unit)} to {amount(high, unit)}"


def percent(share: Number | None, digits: int = 1) -> str:
    return NOTHING if share is None else f"{100 * share:.{digits}f} %"


def number(value: Number | None, digits: int = 3) -> str:
    """Format a number: few digits, commas between thousands, a real minus sign."""
    if value is None:
        return NOTHING
    size = abs(value)
    text = f"{value:,.0f}" if size >= 1000 else f"{value:.{digits}g}"
    return text.replace("-", "−")


def unfinished(done: int, epochs: int | None) -> str:
    """Say how far a run without results has come."""
    if done == epochs:
        return "its epochs are done, its results are not written yet"
    return f"{done} of {epochs or '?'} epochs are done"


def seconds(value: Number | None) -> str:
    if value is None:
        return NOTHING
    if value < 60:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def listed(words: Sequence[str]) -> str:
    """Join words with commas and "and"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def ticks(low: Number, high: Number, most: int = 5) -> list[Number]:
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def span(values: Sequence[Number]) -> tuple[Number, Number]:
    """Return the range of numbers, widened if they are all equal, or too near for an axis."""
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    if high - low > max(1e-12 * size, 1 / FAR):
        return low, high
    room = max(0.5, 1e-9 * size)
    return low - room, high + room
