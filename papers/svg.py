"""Small figures written by hand as SVG: panels of curves, and fields of probability with points in them.

No plotting library, so the same results always give the same bytes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from augury.report.numbers import Number, span, ticks

WIDTH, HEIGHT = 230, 170
"""Of one panel, in pixels."""
LEFT, RIGHT, TOP, BOTTOM = 42, 10, 24, 34
COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "#8fbf26", "#cc79a7", "#555555")
"""Of curves, told apart by people who do not see all colours."""
Box = tuple[Number, Number, Number, Number]


@dataclass(frozen=True)
class Curve:
    """One line of a panel."""

    name: str
    """Its entry in the legend; equal names have equal colours."""
    x: Sequence[Number]
    """Where."""
    y: Sequence[Number]
    """How much."""
    error: Sequence[Number] = ()
    """Standard errors, drawn as bars; none unless given."""
    dashed: bool = False
    """For a reference."""


@dataclass(frozen=True)
class Panel:
    """Curves in one frame."""

    title: str
    """Above it."""
    curves: Sequence[Curve]
    """What it shows."""
    x_label: str = ""
    """Below it."""
    y_label: str = ""
    """Beside it."""
    log_x: bool = False
    """Whether the x axis is logarithmic."""
    from_zero: bool = False
    """Whether the y axis begins at zero."""
    x_names: Sequence[str] = ()
    """Words for x = 0, 1, ... in place of numbers."""


@dataclass(frozen=True)
class Field:
    """Probabilities on a square grid, with labelled points."""

    title: str
    """Above it."""
    values: Sequence[Sequence[Number]]
    """Between 0 and 1, row by row from below."""
    extent: Number
    """The grid runs from -extent to extent."""
    points: Sequence[tuple[Number, Number, int]] = ()
    """x, y and class."""


def chart(panels: Sequence[Panel], columns: int = 3) -> bytes:
    """Draw panels side by side, with one legend."""
    names = list(dict.fromkeys(c.name for panel in panels for c in panel.curves))
    colours = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(names)}
    parts = [_panel(panel, *_place(k, columns), colours) for k, panel in enumerate(panels)]
    rows = math.ceil(len(panels) / columns)
    return _file(parts, min(columns, len(panels)), rows, colours)


def fields(panels: Sequence[Field], columns: int = 3) -> bytes:
    """Draw fields side by side."""
    parts = [_field(panel, *_place(k, columns)) for k, panel in enumerate(panels)]
    return _file(parts, min(columns, len(panels)), math.ceil(len(panels) / columns), {})


def _place(k: int, columns: int) -> tuple[int, int]:
    return (k % columns) * WIDTH, (k // columns) * HEIGHT


def _file(parts: list[str], columns: int, rows: int, colours: dict[str, str]) -> bytes:
    width, height = columns * WIDTH, rows * HEIGHT + (20 if colours else 0)
    step = width / max(1, len(colours))
    legend = [
        f'<rect x="{k * step + 6:.0f}" y="{height - 14}" width="10" height="4" fill="{colour}"/>'
        f"{_text(k * step + 19, height - 9, name, 'start')}"
        for k, (name, colour) in enumerate(colours.items())
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="9">'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    )
    return "\n".join([head, *parts, *legend, "</svg>", ""]).encode()


def _text(x: Number, y: Number, words: str, anchor: str = "middle", turn: bool = False) -> str:
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}>{escape(words)}</text>'


def _panel(panel: Panel, dx: int, dy: int, colours: dict[str, str]) -> str:
    xs = [math.log10(x) if panel.log_x else x for c in panel.curves for x in c.x] or [0.0]
    ys = [y for c in panel.curves for y in c.y] or [0.0]
    box = (*span(xs), *span([*ys, 0.0] if panel.from_zero else ys))
    x0, x1, y0, y1 = dx + LEFT, dx + WIDTH - RIGHT, dy + TOP, dy + HEIGHT - BOTTOM
    parts = [
        f'<rect x="{x0}" y="{y0}" width="{x1 - x0}" height="{y1 - y0}" fill="none" stroke="#999"/>',
        _text((x0 + x1) / 2, y0 - 8, panel.title),
        _text((x0 + x1) / 2, y1 + 26, panel.x_label),
        _text(dx + 10, (y0 + y1) / 2, panel.y_label, turn=True),
    ]
    parts += _below(panel, box, dx, dy)
    parts += [_text(x0 - 4, _at(box[0], y, box, dx, dy)[1] + 3, f"{y:.4g}", "end") for y in ticks(*box[2:])]
    return "\n".join(parts + [_curve(c, panel.log_x, box, dx, dy, colours[c.name]) for c in panel.curves])


def _below(panel: Panel, box: Box, dx: int, dy: int) -> list[str]:
    """Return the marks of the x axis; words by turns higher and lower, so that they do not meet."""
    y = dy + HEIGHT - BOTTOM + 12
    if panel.x_names:
        at = [_at(k, box[2], box, dx, dy)[0] for k in range(len(panel.x_names))]
        return [_text(x, y + 10 * (k % 2), panel.x_names[k]) for k, x in enumerate(at)]
    if panel.log_x:
        marks = sorted({x for c in panel.curves for x in c.x})
        return [_text(_at(math.log10(x), box[2], box, dx, dy)[0], y, f"{x:g}") for x in marks]
    return [_text(_at(x, box[2], box, dx, dy)[0], y, f"{x:g}") for x in ticks(*box[:2])]


def _at(x: Number, y: Number, box: Box, dx: int, dy: int) -> tuple[Number, Number]:
    """Return where on the page a point of a panel is."""
    across = (x - box[0]) / (box[1] - box[0]) * (WIDTH - LEFT - RIGHT)
    up = (y - box[2]) / (box[3] - box[2]) * (HEIGHT - TOP - BOTTOM)
    return dx + LEFT + across, dy + HEIGHT - BOTTOM - up


def _curve(curve: Curve, log_x: bool, box: Box, dx: int, dy: int, colour: str) -> str:
    xs = [math.log10(x) if log_x else x for x in curve.x]
    at = [_at(x, y, box, dx, dy) for x, y in zip(xs, curve.y, strict=True)]
    dash = ' stroke-dasharray="4 3"' if curve.dashed else ""
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    parts = [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>']
    for x, y, e in zip(xs, curve.y, curve.error, strict=False):
        (px, low), (_, high) = _at(x, y - e, box, dx, dy), _at(x, y + e, box, dx, dy)
        parts.append(f'<path d="M{px:.1f} {low:.1f}V{high:.1f}" stroke="{colour}"/>')
    return "\n".join(parts)


def _field(field: Field, dx: int, dy: int) -> str:
    side = HEIGHT - TOP - 10
    x0, y0, n = dx + (WIDTH - side) / 2, dy + TOP, len(field.values)
    size = side / n
    parts = [_text(dx + WIDTH / 2, y0 - 8, field.title)]
    for row, values in enumerate(field.values):
        for column, p in enumerate(values):
            x, y = x0 + column * size, y0 + side - (row + 1) * size
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{size + 0.3:.1f}" height="{size + 0.3:.1f}" fill="{_shade(p)}"/>'
            )
    for px, py, label in field.points:
        x, y = x0 + side * (px / field.extent + 1) / 2, y0 + side * (1 - py / field.extent) / 2
        fill = ("#003a5c", "#7a3200")[label]
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="{fill}" stroke="white" stroke-width="0.3"/>'
        )
    return "\n".join(parts)


def _shade(p: Number) -> str:
    """Blue for 0, white for 1/2, orange for 1."""
    end, weight = ((0, 114, 178), 1 - 2 * p) if p < 0.5 else ((213, 94, 0), 2 * p - 1)
    return "#" + "".join(f"{round(255 + (c - 255) * weight):02x}" for c in end)
