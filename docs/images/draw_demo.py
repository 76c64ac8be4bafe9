"""Draw the picture of the README from the folder of a run: `python docs/images/draw_demo.py runs/demo`.

On the left every width over training, as eta (radians, half image sizes, logarithms of factors), so that all share one
axis; on the right test inputs as they are, and under what was learned. The figures are those in the folder.
"""

import base64
import json
import math
import sys
from html import escape
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 940, 300, 56, 474, 46, 48
COLOURS = ("#56b4e9", "#0072b2", "#d55e00", "#009e73", "#8fbf26", "#cc79a7")
"""Told apart by people who do not see all colours."""
TILE, COLUMNS, GAP = 44, 6, 16
"""Pixels of a picture; how many stand in a row, the input first; how far it stands from its views."""


def draw(run: Path) -> str:
    """Return the picture of a run.

    Parameters
    ----------
    run
        The folder of `augury learn` on images.

    Returns
    -------
    str
        SVG.
    """
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    learned = json.loads((run / "invariance.json").read_text(encoding="utf-8"))["widths"]
    size = json.loads((run / "config.json").read_text(encoding="utf-8"))["data"]["input_shape"][-1]
    parts = [*_frame(len(rows), learned), *_curves(rows, learned, size), *_pictures(run)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="#222">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="white"/>'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def eta(value: float, unit: str, size: int) -> float:
    """Return a width as eta.

    Parameters
    ----------
    value
        As a person reads it.
    unit
        Its unit.
    size
        Pixels along a side.

    Returns
    -------
    float
        Radians, half image sizes, the logarithm of a factor, or the number itself.
    """
    if unit == "deg":
        return math.radians(value)
    if unit == "px":
        return value / (size / 2)
    return math.log(value) if unit == "factor" else value


def said(value: float, unit: str) -> str:
    """Return a width in words.

    Parameters
    ----------
    value
        As a person reads it.
    unit
        Its unit.

    Returns
    -------
    str
        Such as "± 90°".
    """
    return {"deg": f"± {value:.0f}°", "px": f"± {value:.1f} px", "factor": f"× {value:.2f}"}.get(unit, f"± {value:.2f}")


def _text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def _at(epoch: float, value: float, epochs: int) -> tuple[float, float]:
    across, up = WIDTH - RIGHT - LEFT, HEIGHT - TOP - BOTTOM
    return LEFT + across * epoch / epochs, HEIGHT - BOTTOM - up * value / (1.1 * math.pi)


def _frame(epochs: int, learned: dict[str, Any]) -> list[str]:
    (x0, y0), (x1, _) = _at(0, 0, epochs), _at(epochs, 0, epochs)
    parts = [
        _text(LEFT, 26, "What the labels survive, learned while the network trains", more=' font-weight="600"'),
        f'<path d="M{x0} {TOP}V{y0}H{x1}" fill="none" stroke="#999"/>',
        _text((x0 + x1) / 2, HEIGHT - 12, "epoch", "middle"),
    ]
    parts += [_text(_at(e, 0, epochs)[0], y0 + 17, str(e), "middle") for e in range(0, epochs + 1, 5)]
    for degrees in (0, 90, 180):
        y = _at(0, math.radians(degrees), epochs)[1]
        parts.append(_text(x0 - 6, y + 4, f"{degrees}°", "end"))
    truth = learned.get("rotation", {}).get("planted")
    if truth is not None:
        y = _at(0, math.radians(truth), epochs)[1]
        parts.append(f'<path d="M{x0} {y:.1f}H{x1}" stroke="{COLOURS[2]}" stroke-dasharray="5 4"/>')
        parts.append(
            _text(x0 + 6, y - 6, f"planted in the data: rotation ± {truth:.0f}°", more=f' fill="{COLOURS[2]}"')
        )
    return parts


def _curves(rows: list[dict[str, Any]], learned: dict[str, Any], size: int) -> list[str]:
    parts, heights = [], []
    ends = sorted(learned, key=lambda name: eta(learned[name]["value"], learned[name]["unit"], size))
    for name in ends:
        unit, colour = learned[name]["unit"], COLOURS[list(learned).index(name) % len(COLOURS)]
        points = [(0.0, 0.0), *((row["epoch"], eta(row["widths"][name], unit, size)) for row in rows)]
        line = " ".join("{:.1f},{:.1f}".format(*_at(e, v, len(rows))) for e, v in points)
        bold = 3 if learned[name]["verdict"] == "invariant" else 1.6
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{bold}" stroke-linejoin="round"/>'
        )
        x, y = _at(len(rows), points[-1][1], len(rows))
        y = min([y + 4, *(h - 15 for h in heights[-1:])])  # labels do not meet
        heights.append(y)
        parts.append(_text(x + 8, y, f"{name} {said(learned[name]['value'], unit)}", more=f' fill="{colour}"'))
    return parts


def _pictures(run: Path) -> list[str]:
    shown = json.loads((run / "views" / "exhibits.json").read_text(encoding="utf-8"))["draws"]
    data = base64.b64encode((run / "views" / shown["file"]).read_bytes()).decode()
    x0, y0 = WIDTH - COLUMNS * TILE - GAP - 18, TOP + 16
    across, down = shown["columns"] * TILE, shown["rows"] * TILE
    parts = [
        f'<defs><image id="all" width="{across}" height="{down}" href="data:image/png;base64,{data}"/></defs>',
        _text(x0, y0 - 8, "input"),
        _text(x0 + TILE + GAP, y0 - 8, "under what was learned"),
    ]
    for row in range(shown["rows"]):
        for column in range(COLUMNS):
            x, y = x0 + column * TILE + (GAP if column else 0), y0 + row * (TILE + 2)
            window = f'viewBox="{column * TILE} {row * TILE} {TILE} {TILE}"'
            parts.append(f'<svg x="{x}" y="{y}" width="{TILE - 2}" height="{TILE}" {window}><use href="#all"/></svg>')
    return parts


if __name__ == "__main__":
    target = Path(__file__).with_name("demo.svg")
    target.write_text(draw(Path(sys.argv[1])), encoding="utf-8")
    print(target)
