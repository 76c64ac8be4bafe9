"""Bars: a width with its interval and the planted truth, and any list of numbers side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from augury.records import Width
from augury.report.axes import Number

LENGTH, THICK = 300, 26
FULL = {"deg": 180.0, "%": 100.0}
"""Where the scale of a unit ends by nature."""
LEAST = {"px": 2.0, "factor": 1.5}
"""Where it ends at the earliest; 0.5 for plain numbers."""


def scale_end(widths: Sequence[Width]) -> float:
    """Return where a scale ends that holds some widths of one unit."""
    unit = widths[0].unit
    known = [v for w in widths for v in (w.value, w.low, w.high, w.planted) if v is not None]
    return FULL.get(unit) or max(LEAST.get(unit, 0.5), 1.15 * max(known))


def width_bar(width: Width, end: Number | None = None) -> Markup:
    """Draw a width from nothing to its value, its interval, and the truth where it is known."""
    end = end or scale_end([width])

    def at(value: float) -> float:
        share = math.log(value) / math.log(end) if width.unit == "factor" else value / end
        return LENGTH * min(1.0, max(0.0, share))

    parts = [
        Markup('<rect class="track" y="10" width="{}" height="6" rx="3"/>').format(LENGTH),
        Markup('<rect class="fill" y="10" width="{:.1f}" height="6" rx="3"/>').format(at(width.value)),
    ]
    if width.low is not None:
        low, high = at(width.low), LENGTH if width.high is None else at(width.high)
        whisker = Markup('<path class="whisker" d="M{:.1f} 5v16M{:.1f} 5v16M{:.1f} 13H{:.1f}"/>')
        parts.append(whisker.format(low, high, low, high))
    if width.planted is not None:
        parts.append(Markup('<path class="truth" d="M{:.1f} 4l6 9-6 9-6-9z"/>').format(at(width.planted)))
    box = f"-8 0 {LENGTH + 16} {THICK}"
    return Markup('<svg class="width" viewBox="{}" aria-hidden="true">{}</svg>').format(
        box, Markup("").join(parts)
    )


@dataclass(frozen=True)
class Bar:
    """One bar of a list."""

    name: str
    """What it is."""
    value: Number
    """How long."""
    text: str
    """How the value is written."""
    colour: int = 0
    """Which of the page's colours."""


def bar_list(
    bars: Sequence[Bar], end: Number | None = None, limit: tuple[str, Number] | None = None
) -> Markup:
    """Draw bars one below the other, with their names and values as text."""
    end = end or max([bar.value for bar in bars] + [limit[1] if limit else 0.0]) or 1.0
    mark = Markup("")
    if limit is not None:
        share = min(100.0, 100 * limit[1] / end)
        mark = Markup('<i class="limit" style="left:{:.2f}%" title="{}"></i>').format(share, limit[0])
    entry = Markup(
        '<li><span class="what">{}</span><span class="bar c{}"><i style="width:{:.2f}%"></i>{}</span>'
        '<span class="how">{}</span></li>'
    )
    entries = [entry.format(b.name, b.colour, min(100.0, 100 * b.value / end), mark, b.text) for b in bars]
    return Markup('<ul class="bars">{}</ul>').format(Markup("").join(entries))
