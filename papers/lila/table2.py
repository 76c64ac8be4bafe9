"""Table 2: a Wide ResNet on CIFAR-10, with the exact GGN and with the empirical Fisher.

One view through the Wide ResNet costs some thirty times what it costs in a ResNet of depth 8, so scale `small` takes
the latter; there our default, the sampled Fisher, stands beside the two.
"""

from collections.abc import Sequence
from typing import Any

from papers.cell import Cell, Result
from papers.item import Item
from papers.lila.published import TABLE_2, printed
from papers.lila.settings import settings
from papers.markdown import accuracies, evidences, grouped, seconds, spread, table

OUTPUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "augerino": {},
    "lila": {},
    "lila/ggn": {"output": "ggn"},
    "lila/ef": {"output": "ef"},
}
"""Rows of the table, and the curvature in the outputs."""
DATA = {
    "quick": ("mnist5k", "cnn", 40, 50),
    "small": ("cifar10", "resnet_8_8", 1000, 2000),
    "paper": ("cifar10", "wide_resnet_16_4", None, None),
}
"""Data, network, training and test images, by scale."""


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs, seed by seed."""
    data, model, images, test_images = DATA[scale]
    methods = [m for m in OUTPUTS if not (m == "lila" and scale == "paper")]
    return [
        Cell(data, "original", model, m, seed, _settings(scale, data, model, m), images, test_images)
        for seed in seeds
        for m in methods
    ]


def _settings(scale: str, data: str, model: str, method: str) -> dict[str, Any]:
    return settings(scale, data, model, method.partition("/")[0]) | OUTPUTS[method]


def write(results: Sequence[Result]) -> str:
    """Return ours beside the paper's."""
    groups = grouped(results, lambda cell: (cell.method,))
    rows = [
        [
            key[0],
            spread(accuracies(group), 2, 100),
            printed(TABLE_2.get(key[0])),
            spread(evidences(group), 3),
            spread(seconds(group), 0),
        ]
        for key, group in groups.items()
    ]
    first = results[0]
    return (
        f"Ours: {first.cell.model} on {first.N:,} images of {first.cell.data}. The paper: Wide ResNet 16-4 on all of "
        f"CIFAR-10. `lila` is our default, the sampled Fisher.\n\n"
        + table(["method", "test accuracy, %", "paper", "log evidence per image", "seconds"], rows)
    )


TABLE2 = Item("A residual network on CIFAR-10: exact GGN and empirical Fisher.", grid, write)
