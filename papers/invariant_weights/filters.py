"""Filter banks: Figure 3 (over training), Figure 4 (affine, by data set) and Figure 6 (CIFAR-10), of the ReLU network.

Each row shows copies of a first-layer filter under transformations of the learned widths: equally spaced ones, or
random ones. The filters are those that weigh most in the outputs; red is positive, blue negative.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from papers.cell import Cell, Result
from papers.invariant_weights.banks import LEVELS, pictures, unpack
from papers.invariant_weights.published import SINGLE
from papers.invariant_weights.run import GRID, MATCHING, run
from papers.invariant_weights.settings import cell, row_of
from papers.invariant_weights.transformations import TABLE2, TABLE3, widths
from papers.item import Item
from papers.mosaic import Row, mosaic

BANKS = "banks"
VIEWS = {"quick": 5, "small": 16, "paper": 32}
"""Equally spaced views in training."""


def grid3(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs of Figure 3: a learned rotation from no invariance, on equally spaced views."""
    settings: dict[str, Any] = {"generators": ["rotation"], "sampling": "grid", "samples": VIEWS[scale]}
    settings |= {"widths": {"rotation": 5.0}, "settle_window": 0}
    return [cell(scale, seed, GRID, "rotated", "relu", **settings) for seed in seeds]


def grid4(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs of Figure 4: the affine ones of Table 2."""
    return [c for c in TABLE2.grid(scale, seeds) if row_of(c) == "affine"]


def grid6(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs of Figure 6: those of Table 3 that learn what was planted."""
    return [c for c in TABLE3.grid(scale, seeds) if (row_of(c), c.variant) in MATCHING]


def write(results: Sequence[Result]) -> str:
    """Return what the banks were made with."""
    shown = [r for r in results if BANKS in r.extra]
    units = {", ".join(map(str, r.extra["units"])) for r in shown}
    turned = [r for r in results if row_of(r.cell) == GRID]
    which = "; ".join(sorted(units)) or "-"
    text = f"Pictures of units {which}, first seed. The paper shows pictures without numbers.\n"
    for r in turned:
        width = r.invariance.widths["rotation"]
        reached = f"{width.value:.1f} degrees after {r.epoch} epochs (the paper: 179; planted 180)"
        text += f"\nSeed {r.cell.seed}: {reached}.\n"
    return f"{text}\n{widths(results)}" if len(turned) < len(results) else text


def draw(results: Sequence[Result]) -> Mapping[str, bytes]:
    """Draw the banks of every run that kept some."""
    rows: dict[str, list[Row]] = {}
    for result in results:
        for name, packed in result.extra.get(BANKS, {}).items():
            rows.setdefault(name, []).extend(_rows(result, unpack(packed)))
    return {f"{name}.svg": mosaic(bank, LEVELS) for name, bank in rows.items()}


def _rows(result: Result, bank: Any) -> list[Row]:
    """Return a row per snapshot, its filters side by side."""
    found = []
    for epoch, filters in zip(result.extra["bank_epochs"], bank, strict=True):
        label = f"epoch {epoch}" if row_of(result.cell) == GRID else result.cell.variant
        found.append(Row(label, [p for copies in filters for p in pictures(copies)]))
    return found


FIGURE3 = Item("Filters of the ReLU network over training on fully rotated MNIST.", grid3, write, draw, run)
FIGURE4 = Item(
    f"Filters of the affine model after training on MNIST: {', '.join(SINGLE)}.", grid4, write, draw, run
)
FIGURE6 = Item("Filters of the ReLU network after training on CIFAR-10.", grid6, write, draw, run)
