"""Figure 2: the way of all six widths through training, on each variant of MNIST.

The runs are LILA's in `recovery` (at scale `paper`, those of `table1`), so nothing is run twice.
"""

import math
from collections.abc import Mapping, Sequence

from papers.cell import Cell, Result
from papers.item import Item
from papers.lila.recovery import WIDTHS
from papers.lila.recovery import grid as recovery_grid
from papers.lila.table1 import grid as table1_grid
from papers.markdown import grouped, spread, table
from papers.svg import Curve, Panel, chart

SIDE = 28
"""Pixels on a side of the digits."""


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs: LILA with an MLP, on every variant."""
    cells = table1_grid(scale, seeds) if scale == "paper" else recovery_grid(scale, seeds)
    model = "cnn" if scale == "quick" else "mlp"
    return [c for c in cells if (c.method, c.model) == ("lila", model) and c.data.startswith("mnist")]


def to_eta(value: float, unit: str) -> float:
    """Return a width as the paper plots it: radians, half image sides, log-scales."""
    if unit == "deg":
        return math.radians(value)
    if unit == "px":
        return value * 2 / SIDE
    return math.log(value) if unit == "factor" else value


def write(results: Sequence[Result]) -> str:
    """Return where the widths ended, as eta."""
    rows = []
    for (variant,), group in grouped(results, lambda cell: (cell.variant,)).items():
        ends = {name: [_eta(r, name) for r in group] for name in WIDTHS}
        planted = {name: w.planted for name, w in group[0].invariance.widths.items() if w.planted is not None}
        truth = {n: to_eta(v, group[0].invariance.widths[n].unit) for n, v in planted.items()}
        rows.append([variant, *(spread(ends[n]) + _planted(truth.get(n)) for n in WIDTHS)])
    return (
        "Widths as the paper plots them (radians, half image sides, log-scales) in the epoch with the best evidence; "
        f"the planted one in brackets. The figure shows the first seed.\n\n{table(['variant', *WIDTHS], rows)}"
    )


def _eta(result: Result, name: str) -> float:
    width = result.invariance.widths[name]
    return to_eta(width.value, width.unit)


def _planted(truth: float | None) -> str:
    return "" if truth is None else f" ({truth:.2f})"


def draw(results: Sequence[Result]) -> Mapping[str, bytes]:
    """Draw a panel per variant: six curves, the planted truth dashed."""
    groups = grouped(results, lambda cell: (cell.variant,))
    return {"trajectories.svg": chart([_panel(variant, group[0]) for (variant,), group in groups.items()])}


def _panel(variant: str, result: Result) -> Panel:
    widths, curves = result.invariance.widths, []
    for name in WIDTHS:
        values = [to_eta(v, widths[name].unit) for v in result.curves[name] if v is not None]
        curves.append(Curve(name, range(1, len(values) + 1), values))
    for name, width in widths.items():
        if width.planted is not None:
            truth = to_eta(width.planted, width.unit)
            curves.append(Curve(name, [1, len(result.curves[name])], [truth, truth], dashed=True))
    return Panel(variant, curves, "epoch", "eta", from_zero=True)


FIGURE2 = Item(
    "Trajectories of all six widths on each variant of MNIST, LILA with an MLP.", grid, write, draw
)
