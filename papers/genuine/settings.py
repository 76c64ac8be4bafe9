"""Every setting of paper D's runs, in one place: the grid behind its table and its three figures.

`paper` trains for the paper's 300 epochs; `small` for 20, and the regularised network for 60 too: its nu grows while it
trains, and T^2_3 needs a large one; `quick` only shows that everything works. All take Adam 8e-4, batches of 512 and
the five-layer MLP (the defaults of the three methods).
"""

from collections.abc import Sequence

from augury.data.named import find
from papers.cell import ORIGINAL, Cell

GROUPS = ("C4", "T3")
"""R^2_4, the quarter turns, and T^2_3, shifts by thirds on a torus."""
METHODS = {"weight_tied": "WT", "data_augmented": "DA", "regularised": "IR"}
"""Our name of each method, and the paper's."""
DIGITS = ("mnist", "mnist5k")
"""The data of the table and the figures: the complete set, and what ships."""
GROUP_IN_PAPER = {"C4": "R^2_4", "T3": "T^2_3"}

EPOCHS = {"quick": 2, "small": 20, "paper": 300}
LONGER = {"quick": 1, "small": 3, "paper": 1}
"""How many times as long the regularised network trains a second time."""
IMAGES = {"quick": 200, "small": None, "paper": None}
TEST_IMAGES = {"quick": 60, "small": None, "paper": None}
QUICK = {"batch": 50}

OTHER = {"mnist": "fashion_mnist", "fashion_mnist": "mnist", "kmnist10k": "fashion_mnist"}
"""The second data set of the drift: none for what is not named here, which is asked on corrupted copies alone."""


def digits(scale: str) -> str:
    """Return which MNIST to use: the complete one where it is there, else the 5,000 images that ship."""
    return "mnist" if scale == "paper" or (scale == "small" and find("mnist")) else "mnist5k"


def cells(
    scale: str, seeds: Sequence[int], data: str, methods: Sequence[str], groups: Sequence[str] = GROUPS
) -> list[Cell]:
    """Return the runs on a data set, seed by seed."""
    return [
        Cell(
            data,
            ORIGINAL,
            "mlp5",
            f"{method}/{group}",
            seed,
            {"epochs": epochs, "generators": [group], **(QUICK if scale == "quick" else {})},
            IMAGES[scale],
            TEST_IMAGES[scale],
        )
        for seed in seeds
        for group in groups
        for method in methods
        for epochs in lengths(scale, method)
    ]


def lengths(scale: str, method: str) -> tuple[int, ...]:
    """Return for how many epochs a method trains: those of all, and a longer run of the regularised network."""
    epochs = EPOCHS[scale]
    return (epochs, LONGER[scale] * epochs) if method == "regularised" and LONGER[scale] > 1 else (epochs,)


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs behind the table and the figures."""
    return cells(scale, seeds, digits(scale), list(METHODS))


def group_of(cell: Cell) -> str:
    """Return the group of a cell."""
    return str(cell.settings["generators"][0])
