"""Recovery of planted invariances on real digits, all six widths starting at 0 (paper A, section 5.1)."""

from collections.abc import Sequence

from papers.cell import Cell, Result
from papers.item import Item
from papers.lila.compare import comparison
from papers.lila.published import TABLE_1, printed
from papers.lila.settings import METHODS, VARIANTS, digits, settings
from papers.lila.truth import LARGE, NEAR_ZERO, RECOVERED, recovered
from papers.markdown import accuracies, evidences, grouped, seconds, spread, table

IMAGES = {"quick": 40, "small": 5000, "paper": 5000}
TEST_IMAGES = {"quick": 50, "small": 2000, "paper": None}
SHIPPED = 4000
"""Training images of mnist5k, which stands in where MNIST is not at hand."""
WIDTHS = tuple(LARGE)
HEAD = [
    "network",
    "variant",
    "method",
    "test accuracy, %",
    "paper, 60,000 images",
    "log evidence per image",
    "seconds",
]


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs, seed by seed, so that a grid that is cut short is a whole grid of fewer seeds."""
    data = digits(scale)
    images = min(IMAGES[scale], SHIPPED) if data == "mnist5k" else IMAGES[scale]
    models = ("cnn",) if scale == "quick" else ("mlp", "cnn")
    variants = ("rotated", "original") if scale == "quick" else VARIANTS
    epochs = 1000 if scale == "paper" else None
    return [
        Cell(
            data,
            variant,
            model,
            method,
            seed,
            settings(scale, data, model, method, epochs),
            images,
            TEST_IMAGES[scale],
        )
        for seed in seeds
        for model in models
        for variant in variants
        for method in METHODS
    ]


def write(results: Sequence[Result]) -> str:
    """Return the learned widths beside the truth, then accuracy and evidence of all methods."""
    groups = grouped(results, lambda cell: (cell.model, cell.variant, cell.method))
    learned = {key: group for key, group in groups.items() if key[2] != "plain"}
    widths = table(
        ["network", "variant", "method", *WIDTHS, "recovered"],
        [_widths(key, group) for key, group in learned.items()],
    )
    scores = table(HEAD, [_scores(key, group) for key, group in groups.items()])
    source = results[0].invariance.data.split(",")[0]
    return "\n".join([
        f"Data: {source}, {results[0].N:,} training images. Widths as mean ± standard error over seeds; rotation in "
        "degrees, translations in pixels, scales as factors.\n",
        widths,
        "Recovered means:\n",
        *(f"- {variant}: {words}" for variant, (words, _) in RECOVERED.items()),
        f"\nNear 0: {_listed(NEAR_ZERO, 'at most')}. Large: {_listed(LARGE, 'at least')}.\n",
        scores,
        comparison(results),
    ])


def _listed(limits: dict[str, float], words: str) -> str:
    names = {"translate_x": "translations", "rotation": "rotation", "scale_x": "scales", "shear": "shear"}
    units = {"translate_x": "px", "rotation": "deg", "scale_x": "times", "shear": ""}
    return ", ".join(f"{names[k]} {words} {limits[k]:g} {units[k]}".strip() for k in names)


def _widths(key: tuple[str, ...], group: list[Result]) -> list[str]:
    cells = []
    for name in WIDTHS:
        values = [r.invariance.widths[name].value for r in group]
        planted = group[0].invariance.widths[name].planted
        text = spread(values, 1 if name.startswith(("rot", "trans")) else 2)
        cells.append(text if planted is None else f"**{text}** (planted {planted:g})")
    passed = [recovered(key[1], {k: w.value for k, w in r.invariance.widths.items()}) for r in group]
    return [*key, *cells, f"{sum(passed)} of {len(passed)}"]


def _scores(key: tuple[str, ...], group: list[Result]) -> list[str]:
    model, variant, method = key
    return [
        *key,
        spread(accuracies(group), 2, 100),
        printed(TABLE_1.get(("mnist", variant, model, method))),
        spread(evidences(group), 3),
        spread(seconds(group), 0),
    ]


RECOVERY = Item("Widths learned from real digits with a planted truth, all six starting at 0.", grid, write)
