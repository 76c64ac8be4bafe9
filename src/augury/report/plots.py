"""Plots and bars as SVG.

The page's style sheet defines the colours `c0` to `c6`; its script moves a hairline along `data-read` by pointer, touch
or arrow keys. The figures need neither.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

from augury.records.results import Width
from augury.report.numbers import FAR, Number, number, span, ticks

WIDTH, HEIGHT = 360, 200
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 16, 34
COLOURS = 7
MAX_POINTS = 240  # longer lines are thinned


@dataclass(frozen=True)
class Line:
    """One curve."""

    name: str
    x: Sequence[Number]  # increasing
    y: Sequence[Number]
    spread: Sequence[Number] = ()  # half the height of a band around the line
    colour: int = 0
    dashed: bool = False  # for a reference
    dots: bool = False  # points without a line between them


@dataclass(frozen=True)
class Plot:
    """Curves in one frame."""

    title: str
    lines: Sequence[Line]
    x_label: str = "epoch"
    levels: Sequence[tuple[str, Number]] = ()  # horizontal lines with their names: a planted truth, a limit
    at: tuple[str, Number] | None = None  # a position on the x axis to mark, with its name
    y_from: Number | None = None  # the y axis begins here or below
    y_to: Number | None = None  # the y axis ends here or above
    text: Callable[..., str] = number  # format of its numbers


def draw(plot: Plot) -> Markup:
    lines = [line for line in map(_drawable, plot.lines) if len(line.x)]
    plot = replace(plot, levels=[(name, y) for name, y in plot.levels if abs(y) <= FAR])
    box = _box(plot, lines)
    parts = [_grid(plot, box)]
    for name, y in plot.levels:
        at = _y(y, box)
        parts.append(Markup('<path class="level" d="M{} {:.1f}H{}"/>').format(LEFT, at, WIDTH - RIGHT))
        parts.append(_text(WIDTH - RIGHT, at + (13 if at < TOP + 14 else -5), name, "end soft"))
    if plot.at is not None:
        at = _x(plot.at[1], box)
        parts.append(Markup('<path class="mark" d="M{:.1f} {}V{}"/>').format(at, TOP, HEIGHT - BOTTOM))
        parts.append(_text(at, TOP - 4, plot.at[0], "mid soft"))
    parts += [_line(line, box) for line in lines]
    said = "; ".join(f"{line.name}: {plot.text(line.y[0])} to {plot.text(line.y[-1])}" for line in lines)
    return Markup(
        '<svg class="plot" viewBox="0 0 {w} {h}" role="img" tabindex="0" aria-label="{label}" data-read="{read}">'
        '{parts}<line class="hair" y1="{top}" y2="{bottom}"/></svg>'
    ).format(
        w=WIDTH, h=HEIGHT, label=f"{plot.title}. By {plot.x_label}, first to last: {said}.",
        read=json.dumps(_readings(plot, lines, box)), parts=Markup("").join(parts), top=TOP, bottom=HEIGHT - BOTTOM,
    )  # fmt: skip


def _drawable(line: Line) -> Line:
    """Leave out what cannot be drawn, and most points of a long line."""
    keep = [k for k, y in enumerate(line.y) if abs(y) + (abs(line.spread[k]) if line.spread else 0) <= FAR]
    n = len(keep)
    if n > MAX_POINTS:
        keep = [keep[i] for i in sorted({round(k * (n - 1) / (MAX_POINTS - 1)) for k in range(MAX_POINTS)})]
    elif n == len(line.x):
        return line
    x, y, spread = ([values[k] for k in keep] if values else [] for values in (line.x, line.y, line.spread))
    return replace(line, x=x, y=y, spread=spread)


def _box(plot: Plot, lines: Sequence[Line]) -> tuple[Number, ...]:
    xs = [x for line in lines for x in line.x] or [0.0]
    ys = [y for line in lines for y in line.y] + [y for _, y in plot.levels] or [0.0]
    ys += [y + sign * s for line in lines for y, s in zip(line.y, line.spread, strict=False) for sign in (1, -1)]
    ys += [end for end in (plot.y_from, plot.y_to) if end is not None]
    low, high = span(ys)
    room = 0.06 * (high - low)
    low, high = low if low == plot.y_from else low - room, high if high == plot.y_to else high + room
    return (*span(xs), low, high)


def _x(x: Number, box: Sequence[Number]) -> Number:
    return LEFT + (x - box[0]) / (box[1] - box[0]) * (WIDTH - LEFT - RIGHT)


def _y(y: Number, box: Sequence[Number]) -> Number:
    return HEIGHT - BOTTOM - (y - box[2]) / (box[3] - box[2]) * (HEIGHT - TOP - BOTTOM)


def _text(x: Number, y: Number, words: str, kind: str) -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(kind, x, y, words)


def _grid(plot: Plot, box: Sequence[Number]) -> Markup:
    parts = []
    for y in ticks(box[2], box[3], 4):
        at = _y(y, box)
        parts.append(Markup('<path class="grid" d="M{} {:.1f}H{}"/>').format(LEFT, at, WIDTH - RIGHT))
        parts.append(_text(LEFT - 7, at + 4, plot.text(y), "end"))
    whole = plot.x_label == "epoch"
    marks = [x for x in ticks(box[0], box[1], 6) if not whole or x == round(x)]
    parts += [_text(_x(x, box), HEIGHT - BOTTOM + 16, f"{x:g}", "mid") for x in marks]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3, plot.x_label, "mid soft"))
    return Markup("").join(parts)


def _line(line: Line, box: Sequence[Number]) -> Markup:
    points = [(_x(x, box), _y(y, box)) for x, y in zip(line.x, line.y, strict=True)]
    colour = f"c{line.colour % COLOURS}"
    parts = []
    if line.spread:
        pairs = list(zip(line.x, line.y, line.spread, strict=True))
        upper = [f"{_x(x, box):.1f} {_y(y + s, box):.1f}" for x, y, s in pairs]
        lower = [f"{_x(x, box):.1f} {_y(y - s, box):.1f}" for x, y, s in reversed(pairs)]
        parts.append(Markup('<path class="band {}" d="M{}Z"/>').format(colour, "L".join(upper + lower)))
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashed = " dashed" if line.dashed else ""
    if not line.dots:
        parts.append(Markup('<path class="line {}{}" d="M{}"/>').format(colour, dashed, path))
    shown = points if line.dots or (len(points) <= 12 and not line.dashed) else points[-1:]
    parts += [Markup('<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="3"/>').format(colour, *p) for p in shown]
    return Markup("").join(parts)


def _readings(plot: Plot, lines: Sequence[Line], box: Sequence[Number]) -> list[list[object]]:
    """Return for every x its position on the page, and the values there as text."""
    at: dict[Number, list[str]] = {}
    for line in lines:
        for x, y in zip(line.x, line.y, strict=True):
            at.setdefault(x, []).append(f"{line.name} {plot.text(y)}" if len(lines) > 1 else plot.text(y))
    return [[round(_x(x, box), 1), f"{plot.x_label} {x:g}: {', '.join(at[x])}"] for x in sorted(at)]


def legend(lines: Sequence[Line]) -> Markup:
    if len(lines) < 2:
        return Markup("")
    entry = Markup('<li><span class="key {}{}"></span>{}</li>')
    entries = [
        entry.format(f"c{line.colour % COLOURS}", " dashed" if line.dashed else "", escape(line.name)) for line in lines
    ]
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(entries))


LENGTH, THICK = 300, 26
FULL = {"deg": 180.0, "%": 100.0}  # end of the scale of units with a natural end
LEAST = {"px": 2.0, "factor": 1.5}  # smallest end of the scale of other units (default: 0.5)


def scale_end(widths: Sequence[Width]) -> float:
    """Return the end of a scale for some widths of one unit."""
    unit = widths[0].unit
    known = [v for w in widths for v in (w.value, w.low, w.high, w.planted) if v is not None]
    return FULL.get(unit) or max(LEAST.get(unit, 0.5), 1.15 * max(known))


def width_bar(width: Width, end: Number | None = None) -> Markup:
    """Draw a width, its interval, and the planted truth if it is known."""
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
    return Markup('<svg class="width" viewBox="{}" aria-hidden="true">{}</svg>').format(box, Markup("").join(parts))


@dataclass(frozen=True)
class Bar:
    """One bar of a list."""

    name: str
    value: Number
    text: str  # the value as text
    colour: int = 0


def bar_list(bars: Sequence[Bar], end: Number | None = None, limit: tuple[str, Number] | None = None) -> Markup:
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
