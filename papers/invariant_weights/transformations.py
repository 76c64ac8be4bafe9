"""Several transformations: Tables 2 and 7 (ReLU), 6 (RFF), 3 (CIFAR-10) and 8 (two planted at once).

Every model may learn one kind of transformation, or all affine ones, starting from none.
"""

from collections.abc import Sequence
from typing import Any

from papers.cell import Cell, Result
from papers.invariant_weights.published import (
    PAIRS,
    SINGLE,
    TABLE_3,
    TABLE_6,
    TABLE_7,
    TABLE_8,
    Scores,
)
from papers.invariant_weights.run import run
from papers.invariant_weights.settings import TRANSFORMATIONS, baselines, row_of, transformations
from papers.invariant_weights.tables import data_line, scores, words
from papers.invariant_weights.transformation_claims import claims
from papers.item import Grid, Item, Write
from papers.markdown import grouped, spread, table

CIFAR: dict[str, dict[str, Any]] = {
    "quick": {},
    "small": {"data": "cifar10"},
    "paper": {"data": "cifar10"},
}
"""Table 3's data, where they are not digits. "quick" takes the digits, which ship."""


def _grid(
    model: str, variants: Sequence[str], where: dict[str, dict[str, Any]] | None = None, sgpr: bool = False
) -> Grid:
    def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
        columns = variants[:1] if scale == "quick" else variants
        rows = TRANSFORMATIONS[::3] if scale == "quick" else TRANSFORMATIONS
        place = (where or {}).get(scale, {})
        cells = transformations(scale, seeds, model, columns, rows, **place)
        return (baselines(scale, seeds, columns) if sgpr else []) + cells

    return grid


def _write(paper: Scores, variants: Sequence[str], bounds: bool = True) -> Write:
    def write(results: Sequence[Result]) -> str:
        return "\n".join([
            f"{data_line(results)}\n",
            scores(results, variants, paper, bounds),
            "Learned widths (rotation in degrees, translations in pixels, scales as factors; planted ones in bold):\n",
            widths(results),
            claims(results),
        ])

    return write


def widths(results: Sequence[Result]) -> str:
    """Return what was learned."""
    learned = [r for r in results if row_of(r.cell) in TRANSFORMATIONS]
    names = list(dict.fromkeys(name for r in learned for name in r.invariance.widths))
    lines = []
    for (variant, row), group in grouped(learned, lambda cell: (cell.variant, row_of(cell))).items():
        found = [[r.invariance.widths.get(name) for r in group] for name in names]
        lines.append([variant, words(row), *map(_width, found)])
    return table(["data", "model", *names], lines)


def _width(found: Sequence[Any]) -> str:
    values = [None if w is None else w.value for w in found]
    digits = 1 if found[0] is not None and found[0].unit in ("deg", "px") else 2
    text = spread(values, digits)
    planted = None if found[0] is None else found[0].planted
    return text if planted is None else f"**{text}** (planted {planted:g})"


TABLE2 = Item(
    "ReLU network and SGPR on MNIST: test accuracy with several transformations.",
    _grid("relu", SINGLE, sgpr=True),
    _write(TABLE_7, SINGLE, bounds=False),
    run=run,
)
TABLE7 = Item(
    "ReLU network on MNIST: test accuracy and ELBO with several transformations.",
    _grid("relu", SINGLE),
    _write(TABLE_7, SINGLE),
    run=run,
)
TABLE6 = Item(
    "RFF network on MNIST: test accuracy and ELBO with several transformations.",
    _grid("rff", SINGLE),
    _write(TABLE_6, SINGLE),
    run=run,
)
TABLE3 = Item(
    "ReLU network on CIFAR-10: test accuracy with several transformations.",
    _grid("relu", SINGLE, CIFAR),
    _write(TABLE_3, SINGLE, bounds=False),
    run=run,
)
TABLE8 = Item(
    "ReLU network on MNIST with two planted transformations: test accuracy and ELBO.",
    _grid("relu", PAIRS),
    _write(TABLE_8, PAIRS),
    run=run,
)
