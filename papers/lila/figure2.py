"""Figure 2: all six widths over training, on each variant of MNIST.

The runs are LILA's in `recovery` (at scale `paper`, those of `table1`), so nothing is run twice.
"""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from augury.records.results import Width
from papers.catalog import Item
from papers.figures import COLOURS, legend, panels
from papers.lila.recovery import LEARNS, WIDTHS
from papers.lila.recovery import grid as recovery_grid
from papers.lila.table1 import grid as table1_grid
from papers.markdown import grouped, spread, table
from papers.results import Cell, Result

SIDE = 28
"""Pixels on a side of the digits."""


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
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


def planted(width: Width) -> float | None:
    """Return the planted truth as the paper plots it."""
    return None if width.planted is None else to_eta(width.planted, width.unit)


def write(results: Sequence[Result]) -> str:
    rows = []
    for (variant,), group in grouped(results, lambda cell: (cell.variant,)).items():
        row = [variant]
        for name in WIDTHS:
            widths = [r.invariance.widths[name] for r in group]
            truth = planted(widths[0])
            row.append(spread([to_eta(w.value, w.unit) for w in widths]) + ("" if truth is None else f" ({truth:.2f})"))
        rows.append(row)
    return (
        "Widths as the paper plots them (radians, half image sides, log-scales) in the epoch with the best evidence; "
        f"the planted one in brackets. The figure shows the first seed.\n\n{table(['variant', *WIDTHS], rows)}"
    )


def draw(results: Sequence[Result]) -> Mapping[str, Figure]:
    groups = grouped(results, lambda cell: (cell.variant,))
    figure, axes = panels(len(groups))
    for ax, ((variant,), group) in zip(axes, groups.items(), strict=True):
        for name, colour in zip(WIDTHS, COLOURS, strict=False):
            width, curve = group[0].invariance.widths[name], group[0].curves[name]
            values = [to_eta(v, width.unit) for v in curve if v is not None]
            ax.plot(range(1, len(values) + 1), values, color=colour, label=name.replace("_", " "))
            truth = planted(width)
            if truth is not None:
                ax.plot([1, len(values)], [truth] * 2, "--", color=colour, linewidth=1)
        ax.set(title=variant.replace("_", " "), xlabel="epoch", ylabel=r"$\eta$ (rad, half sides, log)")
    axes[0].plot([], [], "--", color="black", linewidth=1, label="planted")
    legend(figure)
    return {"trajectories": figure}


ITEM = Item(
    "Trajectories of all six widths on each variant of MNIST, LILA with an MLP.",
    grid, write, draw, claims=(LEARNS,),
)  # fmt: skip
