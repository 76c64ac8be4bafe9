"""Table 1: test accuracy of three methods, on three data sets and their variants.

At scale `small` the MNIST runs are those of `recovery`; the other data are cut down to fit an hour, so only
comparisons between methods carry over, not the levels.
"""

from collections.abc import Sequence

from papers.cell import Cell, Result
from papers.item import Item
from papers.lila.compare import comparison
from papers.lila.published import TABLE_1, printed
from papers.lila.recovery import grid as recovery_grid
from papers.lila.settings import METHODS, VARIANTS, settings
from papers.markdown import accuracies, evidences, grouped, seconds, spread, table

ROWS = {
    "quick": (("mnist5k", "cnn", 40),),
    "small": (
        ("fashion_mnist", "mlp", 1000),
        ("fashion_mnist", "cnn", 1000),
        ("cifar10", "resnet_8_8", 1000),
    ),
    "paper": (
        ("mnist", "mlp", None),
        ("mnist", "cnn", None),
        ("fashion_mnist", "mlp", None),
        ("fashion_mnist", "cnn", None),
        ("cifar10", "resnet_8_16", None),
    ),
}
"""Data, network and number of images, by scale."""
TEST_IMAGES = {"quick": 50, "small": 2000, "paper": None}
NETWORK_IN_PAPER = {"resnet_8_8": "resnet_8_16"}
"""Whose printed number stands beside a smaller network's."""


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs, seed by seed."""
    variants = ("rotated",) if scale == "quick" else VARIANTS
    mnist = recovery_grid(scale, seeds) if scale == "small" else []
    return mnist + [
        Cell(
            data,
            variant,
            model,
            method,
            seed,
            settings(scale, data, model, method),
            images,
            TEST_IMAGES[scale],
        )
        for seed in seeds
        for data, model, images in ROWS[scale]
        for variant in variants
        for method in METHODS
    ]


def write(results: Sequence[Result]) -> str:
    """Return ours beside the paper's, one line per data set, network and method as in the paper."""
    by_row = grouped(results, lambda c: (c.data, c.model, c.method))
    rows = [line for key, group in by_row.items() for line in _lines(key, group)]
    head = ["data", "network", "method", "whose", *VARIANTS, "log evidence per image, original", "seconds"]
    images = {f"{r.cell.data}: {r.N:,}" for r in results}
    return (
        f"Test accuracy in per cent. The paper trains on all images, we on {', '.join(sorted(images))}.\n\n"
        f"{table(head, rows)}\n{comparison(results)}"
    )


def _lines(key: tuple[str, ...], group: list[Result]) -> list[list[str]]:
    data, model, method = key
    at = {variant: [r for r in group if r.cell.variant == variant] for variant in VARIANTS}
    ours = [spread(accuracies(at[v]), 2, 100) for v in VARIANTS]
    name = "mnist" if data == "mnist5k" else data
    theirs = [TABLE_1.get((name, v, NETWORK_IN_PAPER.get(model, model), method)) for v in VARIANTS]
    return [
        [*key, "ours", *ours, spread(evidences(at["original"]), 3), spread(seconds(group), 0)],
        ["", "", "", "paper", *map(printed, theirs), "-", "-"],
    ]


TABLE1 = Item("Test accuracy of LILA, Augerino and the non-invariant network.", grid, write)
