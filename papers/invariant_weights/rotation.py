"""Rotation alone: Tables 1 and 4 with Figure 2 (RFF network), Table 5 with the paper's Figure 9 (ReLU network).

Five fixed widths against a learned one, which starts at five places, on digits that were turned by up to 180, 90 and 0
degrees.
"""

from collections.abc import Callable, Mapping, Sequence

from papers.cell import Cell, Result
from papers.invariant_weights.published import ROTATIONS, TABLE_4, TABLE_5, Scores
from papers.invariant_weights.rotation_claims import claims
from papers.invariant_weights.run import run
from papers.invariant_weights.settings import FIXED, STARTS, rotations, row_of
from papers.invariant_weights.tables import by_row, data_line, scores, words
from papers.item import Grid, Item, Write
from papers.markdown import grouped, spread, table
from papers.svg import Curve, Panel, chart


def _grid(model: str, fixed: Sequence[int], starts: Sequence[int], prior: str = "held") -> Grid:
    def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
        if scale == "quick":
            return rotations(scale, seeds, model, ROTATIONS[::2], fixed[::4], starts[:1], prior)
        return rotations(scale, seeds, model, ROTATIONS, fixed, starts, prior)

    return grid


def _write(paper: Scores) -> Write:
    def write(results: Sequence[Result]) -> str:
        return "\n".join([
            f"{data_line(results)}\n",
            scores(results, ROTATIONS, paper),
            "Learned rotation in degrees (planted: 180, 90, none):\n",
            widths(results),
            claims(results),
        ])

    return write


def widths(results: Sequence[Result]) -> str:
    """Return the learned rotations."""
    rows = [
        [words(row), *(spread([r.invariance.widths["rotation"].value for r in at.get(v, [])], 1) for v in ROTATIONS)]
        for row, at in by_row(results).items()
        if row.startswith("from")
    ]  # fmt: skip
    return table(["model", *ROTATIONS], rows)


def draw(results: Sequence[Result]) -> Mapping[str, bytes]:
    """Draw the way of the learned rotation, a panel per variant, a curve per start."""
    learned = [r for r in results if row_of(r.cell).startswith("from")]
    groups = grouped(learned, lambda cell: (cell.variant,))
    return {"trajectories.svg": chart([trajectories(v, g) for (v,), g in groups.items()])} if groups else {}


def trajectories(
    title: str, results: Sequence[Result], name: Callable[[Cell], str] = lambda cell: words(row_of(cell))
) -> Panel:
    """Return one panel of rotations by epoch, the planted one dashed."""
    curves = []
    for (label,), group in grouped(results, lambda cell: (name(cell),)).items():
        start = float(group[0].cell.settings["widths"]["rotation"])
        way = [start, *(v for v in group[0].curves["rotation"] if v is not None)]
        curves.append(Curve(label, range(len(way)), way))
    longest = max(len(curve.y) for curve in curves) - 1
    planted = results[0].invariance.widths["rotation"].planted
    if planted is not None:
        curves.append(Curve("planted", [0, longest], [planted, planted], dashed=True))
    return Panel(title, curves, "epoch", "rotation, deg", from_zero=True)


TABLE1 = Item(
    "RFF network on MNIST: five fixed rotations against a learned one.",
    _grid("rff", FIXED, STARTS["rff"][:1]),
    _write(TABLE_4),
    draw,
    run,
)
TABLE4 = Item(
    "RFF network on MNIST: five fixed rotations against learned ones from five starts.",
    _grid("rff", FIXED, STARTS["rff"]),
    _write(TABLE_4),
    draw,
    run,
)
TABLE4_PRIOR = Item(
    "RFF network on MNIST: Table 4 where every width has the prior that suits it best, not all the same one.",
    _grid("rff", FIXED, STARTS["rff"], "learned"),
    _write(TABLE_4),
    draw,
    run,
)
TABLE5 = Item(
    "ReLU network on MNIST: five fixed rotations against learned ones from five starts.",
    _grid("relu", FIXED, STARTS["relu"]),
    _write(TABLE_5),
    draw,
    run,
)
FIGURE2 = Item(
    "RFF network on MNIST: the way of the learned rotation from five starts.",
    _grid("rff", (), STARTS["rff"]),
    _write(TABLE_4),
    draw,
    run,
)
