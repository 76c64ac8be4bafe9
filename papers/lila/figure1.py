"""Figure 1: the posterior predictive on toy points with rotational symmetry, without and with learned invariance."""

from collections.abc import Mapping, Sequence

from papers.cell import Cell, Result
from papers.item import Item
from papers.lila.settings import TOY
from papers.markdown import accuracies, evidences, grouped, seconds, spread, table
from papers.run import learned, result_of
from papers.svg import Field, fields

EXTENT = 3.0
SIDE = {"toy_mlp": 40}
"""Points on a side of the grid on which the predictive is drawn."""
PREDICTIVE = "predictive"


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs, seed by seed."""
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
    model = found.model.cpu()
    delta = next(row["delta"] for row in found.metrics if row["epoch"] == found.epoch)
    side = SIDE[cell.model]
    axis = (torch.arange(side) + 0.5) * (2 * EXTENT / side) - EXTENT
    points = torch.cartesian_prod(axis, axis).flip(1)  # row by row from below
    p = predictive(model, data.x_train, points, delta, found.config.samples_eval, generator(cell.seed))
    shown = torch.cat([data.x_train, data.y_train[:, None]], 1)
    return result_of(
        cell,
        data,
        found,
        predictive=[[round(v, 3) for v in row] for row in p[:, 1].reshape(side, side).tolist()],
        points=[[round(v, 3) for v in point] for point in shown.tolist()],
    )


def write(results: Sequence[Result]) -> str:
    """Return the learned width, accuracy and evidence."""
    rows = []
    for key, group in grouped(results, lambda cell: (cell.variant, cell.method)).items():
        widths = [r.invariance.widths["rotation"] for r in group]
        rows.append([
            *key,
            f"{spread([w.value for w in widths], 1)} (planted {widths[0].planted:g})",
            spread(accuracies(group), 2, 100),
            spread(evidences(group), 3),
            spread(seconds(group), 0),
        ])
    head = ["variant", "method", "rotation, deg", "test accuracy, %", "log evidence per point", "seconds"]
    return f"The figure shows the first seed; the paper prints no numbers for it.\n\n{table(head, rows)}"


def draw(results: Sequence[Result]) -> Mapping[str, bytes]:
    """Draw the predictive of the first seed of each variant and method."""
    groups = grouped([r for r in results if PREDICTIVE in r.extra], lambda cell: (cell.variant, cell.method))
    panels = [_field(key, group[0]) for key, group in groups.items()]
    return {"predictive.svg": fields(panels, columns=2)} if panels else {}


def _field(key: tuple[str, ...], result: Result) -> Field:
    width = result.invariance.widths["rotation"]
    points = [(x, y, int(label)) for x, y, label in result.extra["points"]]
    title = f"{key[0]}, {key[1]}: +-{width.value:.0f} deg"
    return Field(title, result.extra[PREDICTIVE], EXTENT, points)


FIGURE1 = Item(
    "Posterior predictive on toy points, without and with learned rotation.", grid, write, draw, run
)
