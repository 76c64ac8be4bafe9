"""The numbers printed in paper C: descriptors and scores in per cent."""

from dataclasses import dataclass
from typing import Any

GROUPS = ("rotation", "color")
"""Order of the descriptor in the synthetic experiments."""
NATURAL = ("ventral", "dorsal")
"""Order of the descriptor in the contrastive ones."""

RIGHT = {"digit": (1, 1), "rotation": (0, 1)}
"""What each downstream task should be invariant to: (rotation, color)."""


@dataclass(frozen=True)
class Row:
    """A line of Tables 1 and 3, in per cent."""

    i: tuple[int, int]  # estimated invariance to (rotation, color)
    binary: float  # test accuracy with the descriptor rounded
    continuous: float  # with the descriptor as it is
    mtl: float  # of the multi-task baseline
    train: float  # training accuracy, continuous
    train_mtl: float


_ROWS = """
digit      10  61 65  27.5  33.3  22.8   98.2  59.8
digit      20  60 74  41.9  42.1  35.2   98.1  71.6
digit      50  63 80  47.9  49.2  46.7   95.7  73.2
digit     100  65 86  51.3  52.5  47.0   87.7  64.5
digit     200  72 91  51.5  54.2  48.0   82.3  72.9
rotation   10  35 75  52.9  55.8  45.7  100.0  55.8
rotation   20   6 88  72.1  74.4  70.0  100.0  74.4
rotation   50   2 93  77.8  81.1  74.1   97.1  81.1
rotation  100   0 86  79.7  84.4  76.3   84.4  84.4
rotation  200   0 90  85.3  86.9  83.0   92.5  86.9
"""


def _parse(text: str) -> dict[tuple[str, int], Row]:
    rows = {}
    for line in text.strip().split("\n"):
        task, n, a, b, *numbers = line.split()
        rows[task, int(n)] = Row((int(a), int(b)), *map(float, numbers))
    return rows


TABLES_1_AND_3 = _parse(_ROWS)
"""By task and training images per class."""

TABLE_2: dict[str, dict[str, Any]] = {
    "faces": {"i": [46, 59], "binary": 74.0, "hyper": 84.0, "simclr": 45.0, "ventral": 51.0, "dorsal": 82.0},
    "cifar": {"i": [99, 96], "binary": 76.9, "hyper": 78.4, "simclr": 78.6, "ventral": 68.4, "dorsal": 50.5},
}
"""300-W (R^2) and CIFAR-10 (accuracy) in per cent: ResNet-18 at 224 pixels, pre-trained on STL-10."""
