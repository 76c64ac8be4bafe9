"""Figure 1: what the descriptor does.

    left    coloured-rotated digits: measured invariance to rotation and colour along [i, 1 - i]
    middle  natural images: measured invariance to ventral and dorsal views along [i, 1 - i]
    right   downstream: training loss and evidence of digit and rotation prediction along [i, 1], of colour along [1, i]

Measured invariance is the cosine between features of an image and of its view; beside it that of random pairs of
images, without which a collapse would pass for invariance.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from papers.cell import Cell, Result
from papers.hyperinvariances.correlation import spearman
from papers.hyperinvariances.published import GROUPS, NATURAL
from papers.hyperinvariances.settings import BASIC, CONTRASTIVE, MEASURED, POINTS, digits, multitask
from papers.item import Item
from papers.markdown import grouped, spread, table
from papers.svg import Curve, Panel, chart

LINES = {"digit": "i,1", "rotation": "i,1", "colour": "1,i"}
"""Along which line the right panel goes, by task."""
PER_CLASS = {"quick": 4, "small": 100, "paper": 200}


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs, seed by seed."""
    cells = []
    for seed in seeds:
        common = {"points": POINTS[scale], "images": MEASURED[scale]}
        for method, changes in (("left", {}), ("left/basic", BASIC)):
            pretrain = multitask(scale, **changes)
            settings = {**common, "pretrain": pretrain}
            cells.append(Cell(pretrain["data"], "rotation, color", "conv16", method, seed, settings))
        for task in LINES:
            settings = {
                "points": POINTS[scale],
                "per_class": PER_CLASS[scale],
                "pretrain": multitask(scale),
            }
            cells.append(Cell(digits(scale), task, "conv16", "right", seed, settings))
        pretrain = CONTRASTIVE[scale]
        settings = {**common, "pretrain": pretrain}
        cells.append(Cell(pretrain["data"], "ventral, dorsal", pretrain["encoder"], "middle", seed, settings))
    return cells


def run(cell: Cell, device: str = "cpu") -> Result:
    """Measure along a line of descriptors."""
    from papers.hyperinvariances.curves import downstream, measured

    return downstream(cell) if cell.algorithm == "right" else measured(cell)


def write(results: Sequence[Result]) -> str:
    """Return how monotone every curve is, and its ends."""
    rows = []
    for key, group in grouped(results, lambda c: (c.method, c.variant)).items():
        for name, sign in _expected(group[0]).items():
            values = [r.curves[name] for r in group]
            rho = [_along(r, name, sign) for r in group]
            ends = [spread([v[k] for v in values], 3) for k in (0, -1)]
            rows.append([*key, name, *ends, spread(rho, 2), _turns(group, name)])
    head = ["panel", "what", "curve", "at i = 0", "at i = 1", "Spearman", "turns"]
    return (
        "Left and middle: cosine between features of an image and of its view, along [i, 1 - i]; `random pairs` is "
        "that of two images. The Spearman correlation is with the curve's own descriptor entry. Right: along [i, 1] "
        "(rotation entry) for digit and rotation prediction, along [1, i] (colour entry) for colour prediction; "
        "`turns` counts how often a curve changes its direction. The paper prints curves only, and says that measured "
        f"invariance is near monotone and that losses are smooth.\n\n{table(head, rows)}"
    )


def _expected(result: Result) -> dict[str, int]:
    """Return the curves of a result, and in which direction of i its own entry of the descriptor goes."""
    if result.cell.algorithm == "right":
        return {"train_loss": 1, "log_evidence": 1, "test_accuracy": 1}
    first, second = NATURAL if result.cell.algorithm == "middle" else GROUPS
    return {first: 1, second: -1, "random pairs": 1}


def _along(result: Result, name: str, sign: int) -> float:
    pairs = zip(result.curves["i"], result.curves[name], strict=True)
    known = [(sign * i, value) for i, value in pairs if i is not None and value is not None]
    return spearman([i for i, _ in known], [value for _, value in known])


def _turns(group: Sequence[Result], name: str) -> str:
    return spread([float(turns(r.curves[name])) for r in group], 1)


def turns(values: Sequence[float | int | None]) -> int:
    """Count how often a curve changes its direction."""
    known = [v for v in values if v is not None]
    steps = [b - a for a, b in pairwise(known) if b != a]
    return sum(a * b < 0 for a, b in pairwise(steps))


def draw(results: Sequence[Result]) -> Mapping[str, bytes]:
    """Draw the panels of the first seed."""
    groups = grouped(results, lambda c: (c.method, c.variant))
    panels = []
    for (method, what), group in groups.items():
        first: Any = group[0].curves
        if group[0].cell.algorithm == "right":
            for name in ("train_loss", "log_evidence", "test_accuracy"):
                words = name.replace("_", " ")
                panels.append(
                    Panel(f"{what} prediction: {words}", [Curve(words, first["i"], first[name])], "i", words)
                )
            continue
        names = [name for name in first if name != "i"]
        curves = [Curve(n, first["i"], first[n], dashed=n == "random pairs") for n in names]
        panels.append(Panel(f"{method}: [i, 1 - i]", curves, "i", "cosine"))
    return {"curves.svg": chart(panels)} if panels else {}


FIGURE1 = Item("Measured invariance, training loss and evidence by descriptor.", grid, write, draw, run)
