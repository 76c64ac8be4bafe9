"""Figure 1: what the RFF network predicts far from toy points, with no, some and strict rotational invariance.

As in the paper 1,024 features with sigma = 5 (256 at scale `small`), on the points of `data.variants.toy`; the paper's
own are not printed. Beside its three panels is the width that the bound learns, for points of full and of half
symmetry.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from papers.catalog import Item
from papers.claims import Claim, Held
from papers.figures import fields
from papers.invariant_weights.budgets import METHOD, TOY, UNITS, rotation, row_of
from papers.invariant_weights.tables import words
from papers.invariant_weights.training import learned, parts
from papers.learning import data_of, result_of
from papers.lila.figure1 import rounded
from papers.markdown import grouped, scores, table
from papers.markdown import rotation as learned_rotation
from papers.results import Cell, Result

SIGMA = 5.0
EXTENT, SIDE = 3.0, 32
"""The square that is drawn, and points on a side of it."""
FIXED = (0, 45, 180)
"""No, some and strict invariance, in degrees."""
START = 5


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    same = {**TOY[scale], "network": {"units": UNITS[scale], "sigma": SIGMA}}
    planned = [("rotated", f"fixed_{a}", {**rotation(a), "eta_rate": 0.0}) for a in FIXED]
    planned += [(variant, f"from_{START}", rotation(START)) for variant in ("rotated", "partially_rotated")]
    return [
        Cell("toy", variant, "rff", f"{METHOD}/{row}", seed, {**same, **settings})
        for seed in seeds
        for variant, row, settings in planned
    ]


def run(cell: Cell, device: str = "cpu") -> Result:
    """Learn, then predict on a grid of points."""
    import torch

    data = data_of(cell)
    found = learned(cell, data, *parts(cell, data), device)
    axis = (torch.arange(SIDE) + 0.5) * (2 * EXTENT / SIDE) - EXTENT
    points = torch.cartesian_prod(axis, axis).flip(1)  # row by row from below
    with torch.no_grad():
        p = found.model(points).softmax(1)[:, 1].reshape(SIDE, SIDE)
    shown = torch.cat([data.x_train[:], data.y_train[:, None]], 1)
    return result_of(cell, data, found, predictions=rounded(p.tolist()), points=rounded(shown.tolist()))


def write(results: Sequence[Result]) -> str:
    rows = [
        [variant, words(row), learned_rotation(group), *scores(group)]
        for (variant, row), group in grouped(results, _by).items()
    ]
    head = ["variant", "model", "rotation, deg", "test accuracy, %", "ELBO per point", "seconds"]
    return (
        "The figure shows what the mean of q predicts, first seed. The paper prints no numbers for it.\n\n"
        f"{table(head, rows)}"
    )


def _by(cell: Cell) -> tuple[str, ...]:
    return cell.variant, row_of(cell)


def draw(results: Sequence[Result]) -> Mapping[str, Figure]:
    """Draw the predictions of the first seed of each run."""
    found = {}
    for (variant, row), group in grouped(results, _by).items():
        extra, width = group[0].extra, group[0].invariance.widths["rotation"].value
        ended = f": {width:.0f} deg" if row.startswith("from") else ""
        title = f"{variant.replace('_', ' ')},\n{words(row)}{ended}"
        found[title] = extra["predictions"], extra["points"]
    return {"predictions": fields(found, EXTENT)}


def found(results: Sequence[Result]) -> Held:
    learned = [r for r in results if row_of(r.cell).startswith("from") and r.cell.variant == "rotated"]
    return {f"seed {r.cell.seed}": r.invariance.widths["rotation"].value >= 160 for r in learned}


ITEM = Item(
    "Predictions on toy points with no, some and strict invariance.",
    grid, write, draw, run, claims=(Claim("the full rotation is learned: at least 160 deg", found),),
)  # fmt: skip
