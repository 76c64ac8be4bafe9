"""Recovery of planted invariances on real digits, all six widths starting at 0 (paper A, section 5.1).

What counts as recovered is a threshold in the units a person reads. "Near 0" is a width that hardly moves anything: 2
pixels of 28, 8 degrees, 15 % of scale. "Large" is one that is at least half of what the variants plant.
"""

from collections.abc import Callable, Mapping, Sequence

from papers.catalog import Item
from papers.claims import Claim, Held
from papers.learning import digits
from papers.lila.published import TABLE_1, printed
from papers.lila.schedules import METHODS, VARIANTS, cell
from papers.markdown import grouped, scores, spread, table
from papers.results import Cell, Result

IMAGES = {"quick": 40, "small": 5000, "paper": 5000}
SHIPPED = 4000
"""Training images of mnist5k, which is used if MNIST is not at hand."""

Widths = Mapping[str, float]
WIDTHS = ("translate_x", "translate_y", "rotation", "scale_x", "scale_y", "shear")
NEAR_ZERO = dict(zip(WIDTHS, (2.0, 2.0, 8.0, 1.15, 1.15, 0.15), strict=True))
LARGE = dict(zip(WIDTHS, (4.0, 4.0, 45.0, 1.41, 1.41, 0.5), strict=True))

RECOVERED: dict[str, tuple[str, Callable[[Widths], bool]]] = {
    "rotated": (
        "rotation at least 150 deg, the other five near 0",
        lambda w: w["rotation"] >= 150 and all(w[k] <= v for k, v in NEAR_ZERO.items() if k != "rotation"),
    ),
    "partially_rotated": ("rotation between 60 and 120 deg", lambda w: 60 <= w["rotation"] <= 120),
    "translated": (
        "both translations between 5 and 11 px",
        lambda w: all(5 <= w[k] <= 11 for k in ("translate_x", "translate_y")),
    ),
    "scaled": (
        "both scales at least x 1.41 (half the planted log-scale)",
        lambda w: all(w[k] >= LARGE[k] for k in ("scale_x", "scale_y")),
    ),
    "original": ("no large width", lambda w: all(w[k] < v for k, v in LARGE.items())),
}
"""What must hold on each variant, in words and as a test of the learned widths."""


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs, seed by seed, so that a grid that is cut short is a whole grid of fewer seeds."""
    data = digits(scale)
    images = min(IMAGES[scale], SHIPPED) if data == "mnist5k" else IMAGES[scale]
    return [
        cell(scale, data, variant, model, method, seed, images, 1000 if scale == "paper" else None, True)
        for seed in seeds
        for model in (("cnn",) if scale == "quick" else ("mlp", "cnn"))
        for variant in (("rotated", "original") if scale == "quick" else VARIANTS)
        for method in METHODS
    ]


def write(results: Sequence[Result]) -> str:
    groups = grouped(results, lambda cell: (cell.model, cell.variant, cell.method))
    widths = [_widths(key, group) for key, group in groups.items() if key[2] != "plain"]
    rows = []
    for key, group in groups.items():
        accuracy, *others = scores(group)
        rows.append([*key, accuracy, printed(TABLE_1.get(("mnist", key[1], key[0], key[2]))), *others])
    head = ["network", "variant", "method"]
    columns = ["test accuracy, %", "paper, 60,000 images", "log evidence per image", "seconds"]
    source = results[0].invariance.data.split(",")[0]
    return "\n".join([
        f"Data: {source}, {results[0].N:,} training images. Widths as mean ± standard error over seeds; rotation in "
        "degrees, translations in pixels, scales as factors.\n",
        table([*head, *WIDTHS, "recovered"], widths),
        "Recovered means:\n",
        *(f"- {variant}: {words}" for variant, (words, _) in RECOVERED.items()),
        f"\nNear 0: {_listed(NEAR_ZERO, 'at most')}. Large: {_listed(LARGE, 'at least')}.\n",
        table([*head, *columns], rows),
    ])


def _listed(limits: Widths, words: str) -> str:
    names = {"translate_x": "translations", "rotation": "rotation", "scale_x": "scales", "shear": "shear"}
    units = {"translate_x": "px", "rotation": "deg", "scale_x": "times", "shear": ""}
    return ", ".join(f"{names[k]} {words} {limits[k]:g} {units[k]}".strip() for k in names)


def _widths(key: tuple[str, ...], group: list[Result]) -> list[str]:
    cells = []
    for name in WIDTHS:
        widths = [r.invariance.widths[name] for r in group]
        text = spread([w.value for w in widths], 1 if name.startswith(("rot", "trans")) else 2)
        cells.append(text if widths[0].planted is None else f"**{text}** (planted {widths[0].planted:g})")
    holds = RECOVERED[key[1]][1]
    passed = [holds({k: w.value for k, w in r.invariance.widths.items()}) for r in group]
    return [*key, *cells, f"{sum(passed)} of {len(passed)}"]


def recovers(results: Sequence[Result]) -> Held:
    """Return whether most seeds recover what was planted, by network and variant."""
    learned = [r for r in results if r.cell.method == "lila"]
    found = {}
    for (model, variant), group in grouped(learned, lambda c: (c.model, c.variant)).items():
        widths = [{k: w.value for k, w in r.invariance.widths.items()} for r in group]
        found[f"{model} {variant}"] = 2 * sum(map(RECOVERED[variant][1], widths)) > len(widths)
    return found


ENDS = (
    "the CNN's training ends with the first translation at 4.6, 5.0 and 6.6 px, where 5 count, and the profile moves "
    "the last to 1.4, 266 nats up. 8 px are not what the evidence supports: of networks trained at widths held (1,000 "
    "digits), 8 and 5 px have 53 and 61 nats more than 8 and 8. Scales end training with one of the two at 1.3 in "
    "every seed, where 1.41 counts; it is not the epochs: after 60 in place of 20 (a trial, seed 0) they end at 1.2 "
    "and 1.3"
)
LEARNS = Claim("LILA learns the planted invariance, most seeds", recovers, ENDS)
ITEM = Item(
    "Widths learned from real digits with a planted truth, all six starting at 0.",
    grid, write, claims=(LEARNS,),
)  # fmt: skip
