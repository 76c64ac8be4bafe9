"""Figure 3: data efficiency. Test accuracy by the number of training images.

The paper shows CIFAR-10 with a ResNet. Scale `small` takes MNIST with the MLP (as its appendix J.5 does beside others),
where sizes reach down to 312; the largest are the runs of `recovery`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from papers.cell import Cell, Result
from papers.item import Item
from papers.lila.settings import METHODS, VARIANTS, digits, settings
from papers.markdown import accuracies, grouped, mean_se, spread, table
from papers.svg import Curve, Panel, chart

SIZES: dict[str, dict[int, dict[str, Any]]] = {
    "quick": {20: {}, 40: {}},
    "small": {
        312: {"epochs": 180, "evidence_every": 6},
        1250: {"epochs": 90, "evidence_every": 3},
        5000: {},
    },
    "paper": {
        1000: {"epochs": 600},
        5000: {"epochs": 400},
        10_000: {"epochs": 300},
        20_000: {"epochs": 250},
        50_000: {"epochs": 200},
    },
}
"""Training images, and the settings that go with them: fewer images, more passes (the paper's own at `paper`)."""
SHOWN = {"quick": ("rotated",), "small": ("rotated", "translated", "original"), "paper": VARIANTS}
TEST_IMAGES = {"quick": 50, "small": 2000, "paper": None}


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs, seed by seed."""
    data = "cifar10" if scale == "paper" else digits(scale)
    model = {"quick": "cnn", "small": "mlp", "paper": "resnet_8_16"}[scale]
    return [
        Cell(
            data,
            variant,
            model,
            method,
            seed,
            _settings(scale, data, model, method, n),
            n,
            TEST_IMAGES[scale],
        )
        for seed in seeds
        for n in _sizes(scale, data)
        for variant in SHOWN[scale]
        for method in METHODS
    ]


def _sizes(scale: str, data: str) -> list[int]:
    shipped = scale == "small" and data == "mnist5k"
    return [4000 if shipped and n == 5000 else n for n in SIZES[scale]]


def _settings(scale: str, data: str, model: str, method: str, n: int) -> dict[str, Any]:
    chosen = settings(scale, data, model, method)
    return chosen | {k: v for k, v in SIZES[scale].get(n, {}).items() if k == "epochs" or k in chosen}


def write(results: Sequence[Result]) -> str:
    """Return accuracy by size; the paper prints no numbers for its figure."""
    sizes = sorted({r.N for r in results})
    rows = []
    for key, group in grouped(results, lambda cell: (cell.variant, cell.method)).items():
        rows.append([*key, *(spread(accuracies([r for r in group if n == r.N]), 2, 100) for n in sizes)])
    first = results[0].cell
    return (
        f"Test accuracy in per cent by the number of training images: {first.model} on {first.data}. The paper draws "
        f"this figure for a ResNet on CIFAR-10, without numbers.\n\n"
        + table(["variant", "method", *(f"{n:,}" for n in sizes)], rows)
    )


def draw(results: Sequence[Result]) -> Mapping[str, bytes]:
    """Draw a panel per variant, a curve per method."""
    panels = []
    for (variant,), group in grouped(results, lambda cell: (cell.variant,)).items():
        curves = []
        for (method,), runs in grouped(group, lambda cell: (cell.method,)).items():
            sizes = sorted({r.N for r in runs})
            points = [mean_se(accuracies([r for r in runs if n == r.N])) or (0.0, 0.0) for n in sizes]
            mean, error = [100 * p[0] for p in points], [100 * p[1] for p in points]
            curves.append(Curve(method, sizes, mean, error))
        panels.append(Panel(variant, curves, "training images", "test accuracy, %", log_x=True))
    return {"efficiency.svg": chart(panels)}


FIGURE3 = Item("Test accuracy by the number of training images.", grid, write, draw)
