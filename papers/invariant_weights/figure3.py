"""Figure 3: filters over training, of a rotation learned from no invariance on equally spaced views."""

from collections.abc import Sequence

from papers.invariant_weights.budgets import cell, rotation
from papers.invariant_weights.filters import filters_item
from papers.invariant_weights.training import GRID
from papers.results import Cell

VIEWS = {"quick": 5, "small": 16, "paper": 32}
"""Equally spaced views in training."""


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    settings = {**rotation(5), "sampling": "grid", "samples": VIEWS[scale], "settle_window": 0}
    return [cell(scale, seed, GRID, "rotated", "relu", **settings) for seed in seeds]


ITEM = filters_item("Filters of the ReLU network over training on fully rotated MNIST.", grid)
