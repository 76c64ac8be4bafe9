"""Numbers as a person reads them."""

from collections.abc import Sequence

from augury.report.axes import Number

UNITS = {"deg": "°", "px": " px", "%": " %", "factor": "", "": "", "element": ""}
"""What follows a number, by unit; another unit follows after a space."""
NOTHING = "–"
"""Where there is nothing to say."""


def amount(value: Number | None, unit: str) -> str:
    """Write a width or a place on an orbit.

    Parameters
    ----------
    value
        The number, or None.
    unit
        "deg", "px", "factor", "%", "element" or "".

    Returns
    -------
    str
        "178.6°", "0.3 px", "×1.13", "0.11".
    """
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
    """Write how far a width goes, either way.

    Parameters
    ----------
    value
        The width.
    unit
        Its unit.

    Returns
    -------
    str
        "±178.6°"; a factor and a chance have no sign.
    """
    return amount(value, unit) if unit in ("factor", "%") else f"±{amount(value, unit)}"


def interval(low: Number | None, high: Number | None, unit: str) -> str:
    """Write an interval.

    Parameters
    ----------
    low, high
        Its ends; None where it has none.
    unit
        Their unit.

    Returns
    -------
    str
        "177.1° to 180.0°", "at least 177.1°", or a dash.
    """
    if low is None:
        return NOTHING
    return f"at least {amount(low, unit)}" if high is None else f"{amount(low, unit)} to {amount(high, unit)}"


def percent(share: Number | None, digits: int = 1) -> str:
    """Write a share.

    Parameters
    ----------
    share
        From 0 to 1, or None.
    digits
        After the point.

    Returns
    -------
    str
        "95.1 %".
    """
    return NOTHING if share is None else f"{100 * share:.{digits}f} %"


def number(value: Number | None, digits: int = 3) -> str:
    """Write any number: few digits, thousands apart, a real minus sign.

    Parameters
    ----------
    value
        The number, or None.
    digits
        Digits that count.

    Returns
    -------
    str
        "−13,060", "0.0123", "1.2e−07".
    """
    if value is None:
        return NOTHING
    size = abs(value)
    text = f"{value:,.0f}" if size >= 1000 else f"{value:.{digits}g}"
    return text.replace("-", "−")


def signed(value: Number, text: str) -> str:
    """Put a plus sign before the text of a number that is not negative.

    Parameters
    ----------
    value
        The number.
    text
        How it is written.

    Returns
    -------
    str
        "+9.5" or "−9.5".
    """
    return text if value < 0 else f"+{text}"


def seconds(value: Number | None) -> str:
    """Write a time.

    Parameters
    ----------
    value
        Seconds, or None.

    Returns
    -------
    str
        "8.2 s", "3 min 25 s", "2 h 10 min".
    """
    if value is None:
        return NOTHING
    if value < 60:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def listed(words: Sequence[str]) -> str:
    """Join words as one would say them.

    Parameters
    ----------
    words
        At least one.

    Returns
    -------
    str
        "a", "a and b", "a, b and c".
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
