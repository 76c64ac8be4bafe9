"""Figure 3: data efficiency. Test accuracy by the number of training images.

The paper shows CIFAR-10 with a ResNet. Scale `small` takes MNIST with the MLP (as its appendix J.5 does beside others),
where sizes reach down to 312, all with as many steps.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from papers.catalog import Item
from papers.claims import Claim, Held, ahead, means
from papers.figures import legend, panels
from papers.learning import digits
from papers.lila.schedules import METHODS, VARIANTS, cell
from papers.markdown import accuracies, grouped, mean_se, spread, table
from papers.results import Cell, Result

SIZES: dict[str, dict[int, int | None]] = {
    "quick": {20: None, 40: None},
    "small": {312: None, 5000: None, 1250: None, 20_000: None},
    "paper": {1000: 600, 5000: 400, 10_000: 300, 20_000: 250, 50_000: 200},
}
"""Training images and epochs: fewer images, more passes (the paper's own at `paper`; None: the schedule's)."""
TENTHS = {"small": (500, 2000)}
"""A tenth of the larger sizes: for LILA on rotated data, where the paper compares just these."""
SHOWN = {"quick": ("rotated",), "small": ("rotated", "translated", "original"), "paper": VARIANTS}


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    data = "cifar10" if scale == "paper" else digits(scale)
    model = {"quick": "cnn", "small": "mlp", "paper": "resnet_8_16"}[scale]
    most = 4000 if data == "mnist5k" else max(SIZES[scale])
    sizes = {min(n, most): epochs for n, epochs in SIZES[scale].items()}
    runs = [(n, epochs, variant, m) for n, epochs in sizes.items() for variant in SHOWN[scale] for m in METHODS]
    runs += [(n, None, "rotated", "lila") for n in TENTHS.get(scale, ())]
    return [
        cell(scale, data, variant, model, method, seed, n, epochs)
        for seed in seeds
        for n, epochs, variant, method in runs
    ]


def write(results: Sequence[Result]) -> str:
    sizes = sorted({r.N for r in results})
    rows = [
        [*key, *(spread(accuracies([r for r in group if n == r.N]), 2, 100) for n in sizes)]
        for key, group in grouped(results, lambda cell: (cell.variant, cell.method)).items()
    ]
    first = results[0].cell
    return (
        f"Test accuracy in per cent by the number of training images: {first.model} on {first.data}. The paper draws "
        f"this figure for a ResNet on CIFAR-10, without numbers.\n\n"
        + table(["variant", "method", *(f"{n:,}" for n in sizes)], rows)
    )


def draw(results: Sequence[Result]) -> Mapping[str, Figure]:
    groups = grouped(results, lambda cell: (cell.variant,))
    figure, axes = panels(len(groups))
    for ax, ((variant,), group) in zip(axes, groups.items(), strict=True):
        sizes = sorted({r.N for r in group})
        for (method,), runs in grouped(group, lambda cell: (cell.method,)).items():
            found = {n: mean_se(accuracies([r for r in runs if n == r.N])) for n in sizes}
            points = [(n, 100 * pair[0], 100 * pair[1]) for n, pair in found.items() if pair is not None]
            x, mean, error = zip(*points, strict=True)
            ax.errorbar(x, mean, error, marker="o", markersize=3, capsize=2, label=method)
        ax.set(title=variant, xlabel="training images", ylabel="test accuracy, %", xscale="log")
        ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
        ax.minorticks_off()
    legend(figure)
    return {"efficiency": figure}


def _by(cell: Cell) -> tuple[str, ...]:
    return cell.variant, str(cell.subset)


def a_tenth(results: Sequence[Result]) -> Held:
    """Return whether LILA on rotated data has with a tenth of the images, or less, what the plain network has."""
    found = means(results, lambda c: (c.variant, c.method, c.subset))
    sizes = sorted({r.cell.subset or 0 for r in results})
    nearest = {n: max((m for m in sizes if 10 * m <= n), default=None) for n in sizes}
    many = {n: found.get(("rotated", "plain", n)) for n in sizes}
    few = {n: found.get(("rotated", "lila", m)) for n, m in nearest.items()}
    return {f"{nearest[n]} against {n}": few[n] >= many[n] for n in sizes if few[n] and many[n]}  # type: ignore[operator]


SHORT = (
    "79.7 against 82.1 % after 600 steps, when the rotation is at 96 degrees; after 2,400 (a trial) it is at 180 and "
    "they have 84.2 against 84.7, within the error of 1.1"
)
CLAIMS = (
    ahead("LILA has a higher test accuracy than the non-invariant network at every size", "plain", _by),
    ahead("LILA has a higher test accuracy than Augerino in most cases", "augerino", _by),
    Claim("on rotated data LILA needs a tenth of the images of the non-invariant network", a_tenth, SHORT),
)
ITEM = Item("Test accuracy by the number of training images.", grid, write, draw, claims=CLAIMS)
