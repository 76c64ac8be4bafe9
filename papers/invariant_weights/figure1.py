"""Figure 1: what the RFF network predicts far from toy points, with no, some and strict rotational invariance.

As in the paper 1,024 features with sigma = 5 (256 at scale `small`), on the points of `data.variants.toy`; the paper's
own are not printed. Beside its three panels stands the width that the bound learns, for points of full and of half
symmetry.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from papers.cell import Cell, Result
from papers.invariant_weights.run import learned, parts
from papers.invariant_weights.settings import METHOD, TOY, TOY_UNITS, row_of
from papers.invariant_weights.tables import words
from papers.item import Item
from papers.markdown import accuracies, evidences, grouped, seconds, spread, table
from papers.run import read_data, result_of
from papers.svg import Field, fields

SIGMA = 5.0
EXTENT, SIDE = 3.0, 32
"""The square that is drawn, and points on a side of it."""
FIXED = (0, 45, 180)
"""No, some and strict invariance, in degrees."""
START = 5
PREDICTIONS = "predictions"


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs, seed by seed."""
    rows: dict[str, dict[str, Any]] = {
        f"fixed_{a}": {"widths": {"rotation": float(a)}, "eta_rate": 0.0} for a in FIXED
    }
    rows[f"from_{START}"] = {"widths": {"rotation": float(START)}}
    same = {
        **TOY[scale],
        "generators": ["rotation"],
        "network": {"units": TOY_UNITS[scale], "sigma": SIGMA},
    }
    planned = [("rotated", row) for row in rows] + [("partially_rotated", f"from_{START}")]
    return [
        Cell("toy", variant, "rff", f"{METHOD}/{row}", seed, {**same, **rows[row]})
        for seed in seeds
        for variant, row in planned
    ]


def run(cell: Cell, device: str = "cpu") -> Result:
    """Learn, then predict on a grid of points."""
    import torch

    data = read_data(cell.data, cell.variant, cell.subset, cell.test_images, cell.seed)
    found = learned(cell, data, *parts(cell, data), device)
    axis = (torch.arange(SIDE) + 0.5) * (2 * EXTENT / SIDE) - EXTENT
    points = torch.cartesian_prod(axis, axis).flip(1)  # row by row from below
    with torch.no_grad():
        p = found.model(points).softmax(1)[:, 1].reshape(SIDE, SIDE)
    shown = torch.cat([data.x_train, data.y_train[:, None]], 1)
    kept = {PREDICTIONS: _rounded(p.tolist()), "points": _rounded(shown.tolist())}
    return result_of(cell, data, found, **kept)


def _rounded(rows: list[list[float]]) -> list[list[float]]:
    return [[round(v, 3) for v in row] for row in rows]


def write(results: Sequence[Result]) -> str:
    """Return width, accuracy and bound of every run."""
    rows = []
    for (variant, row), group in grouped(results, _by).items():
        found = [r.invariance.widths["rotation"] for r in group]
        rows.append([
            variant,
            words(row),
            f"{spread([w.value for w in found], 1)} (planted {found[0].planted:g})",
            spread(accuracies(group), 2, 100),
            spread(evidences(group), 3),
            spread(seconds(group), 0),
        ])
    head = ["variant", "model", "rotation, deg", "test accuracy, %", "ELBO per point", "seconds"]
    return (
        "The figure shows what the mean of q predicts, first seed. The paper prints no numbers for it.\n\n"
        f"{table(head, rows)}"
    )


def _by(cell: Cell) -> tuple[str, ...]:
    return cell.variant, row_of(cell)


def draw(results: Sequence[Result]) -> Mapping[str, bytes]:
    """Draw the predictions of the first seed of each run."""
    panels = []
    for (variant, row), group in grouped(results, _by).items():
        points = [(x, y, int(label)) for x, y, label in group[0].extra["points"]]
        width = group[0].invariance.widths["rotation"].value
        title = f"{variant}, {words(row)}" + (f": {width:.0f}" if row.startswith("from") else "")
        panels.append(Field(title, group[0].extra[PREDICTIONS], EXTENT, points))
    return {"predictions.svg": fields(panels)}


FIGURE1 = Item("Predictions on toy points with no, some and strict invariance.", grid, write, draw, run)
