"""Figure 1: the posterior predictive on toy points with rotational symmetry, without and with learned invariance."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from papers.catalog import Item
from papers.claims import Claim, ahead
from papers.figures import fields
from papers.learning import learned, result_of
from papers.lila.schedules import TOY
from papers.markdown import evidences, grouped, rotation, scores, table
from papers.results import Cell, Result

EXTENT, SIDE = 3.0, 40
"""The square that is drawn, and points on a side of it."""


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    one = {"samples": 1, "samples_eval": 1}
    return [
        Cell("toy", "rotated", "toy_mlp", method, seed, TOY[scale] | (one if method == "plain" else {}))
        for seed in seeds
        for method in ("plain", "lila")
    ]


def run(cell: Cell, device: str = "cpu") -> Result:
    """Learn, then predict on a grid of points."""
    import torch

    from augury.core.rng import generator
    from papers.lila.predictive import predictive

    data, found = learned(cell, device)
    delta = next(row["delta"] for row in found.metrics if row["epoch"] == found.epoch)
    axis = (torch.arange(SIDE) + 0.5) * (2 * EXTENT / SIDE) - EXTENT
    points = torch.cartesian_prod(axis, axis).flip(1)  # row by row from below
    S, rng = found.config.samples_eval, generator(cell.seed)
    p = predictive(found.model.cpu(), data.x_train[:], points, delta, S, rng)[:, 1].reshape(SIDE, SIDE)
    shown = torch.cat([data.x_train[:], data.y_train[:, None]], 1)
    return result_of(cell, data, found, predictive=rounded(p.tolist()), points=rounded(shown.tolist()))


def rounded(rows: list[list[float]]) -> list[list[float]]:
    """Return numbers with three digits, which is what a picture needs."""
    return [[round(v, 3) for v in row] for row in rows]


def write(results: Sequence[Result]) -> str:
    groups = grouped(results, lambda cell: (cell.variant, cell.method))
    rows = [[*key, rotation(group), *scores(group)] for key, group in groups.items()]
    head = ["variant", "method", "rotation, deg", "test accuracy, %", "log evidence per point", "seconds"]
    return f"The figure shows the first seed; the paper prints no numbers for it.\n\n{table(head, rows)}"


def draw(results: Sequence[Result]) -> Mapping[str, Figure]:
    """Draw the predictive of the first seed of each variant and method."""
    found = {}
    for (variant, method), group in grouped(results, lambda cell: (cell.variant, cell.method)).items():
        extra, width = group[0].extra, group[0].invariance.widths["rotation"].value
        found[f"{variant}, {method}: ±{width:.0f} deg"] = extra["predictive"], extra["points"]
    return {"predictive": fields(found, EXTENT)}


CLAIMS = (
    Claim(
        "LILA learns the full rotation (at least 150 deg)",
        lambda rs: {
            f"seed {r.cell.seed}": r.invariance.widths["rotation"].value >= 150 for r in rs if r.cell.method == "lila"
        },
    ),
    ahead("its evidence is above that of the non-invariant network", "plain", lambda c: (c.variant,), evidences),
)
ITEM = Item(
    "Posterior predictive on toy points, without and with learned rotation.",
    grid, write, draw, run, claims=CLAIMS,
)  # fmt: skip
