"""Rotation alone: Tables 1 and 4 with Figure 2 (RFF network), Table 5 with the paper's Figure 9 (ReLU network).

Five fixed widths against a learned one, which starts at five places, on digits that were turned by up to 180, 90 and 0
degrees; and what must hold of the learned ones, with how often it does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.catalog import Item
from papers.claims import Claim, Held, means
from papers.figures import legend, panels
from papers.invariant_weights.budgets import rotations, row_of
from papers.invariant_weights.published import ROTATIONS, Scores
from papers.invariant_weights.tables import FOLLOWS, by_row, data_line, numbers, scores, words
from papers.invariant_weights.training import run
from papers.markdown import accuracies, evidences, grouped, mean_of, spread, table
from papers.results import ORIGINAL, Cell, Result

FULL = 160.0
"""Degrees that count as full invariance."""
NEAR = 25.0
"""Degrees from 90 that still count as found."""
LOW = 90
"""Starts up to here must succeed; the paper itself reports failures from wider ones."""


def rotation_item(
    what: str,
    model: str,
    fixed: Sequence[int],
    starts: Sequence[int],
    paper: Scores,
    prior: str = "held",
    many: bool = False,
) -> Item:
    """Return an item that compares fixed and learned rotations of one network."""

    def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
        if scale == "quick":
            return rotations(scale, seeds, model, ROTATIONS[::2], fixed[::4], starts[:1], prior, many)
        return rotations(scale, seeds, model, ROTATIONS, fixed, starts, prior, many)

    def write(results: Sequence[Result]) -> str:
        return "\n".join([
            f"{data_line(results)}\n",
            scores(results, ROTATIONS, paper),
            "Learned rotation in degrees (planted: 180, 90, none):\n",
            widths(results),
        ])

    own = ", every width with its own prior" * (prior == "learned")
    # Of the ReLU network the paper prints no widths.
    found = tuple(replace(c, why=FOLLOWS) for c in AS_GOOD) if model == "relu" else (*FOUND, *AS_GOOD)
    stated = tuple(replace(claim, words=f"{model}{own}: {claim.words}", ours=bool(own)) for claim in found)
    return Item(what, grid, write, draw, run, claims=stated, pairs=lambda results: numbers(results, paper))


def width(result: Result) -> float:
    return result.invariance.widths["rotation"].value


def widths(results: Sequence[Result]) -> str:
    rows = [
        [words(row), *(spread([width(r) for r in at.get(variant, [])], 1) for variant in ROTATIONS)]
        for row, at in by_row(results).items()
        if row.startswith("from")
    ]
    return table(["model", *ROTATIONS], rows)


def draw(results: Sequence[Result]) -> Mapping[str, Figure]:
    """Draw the learned rotation over training, a panel per variant, a curve per start."""
    learned = [r for r in results if row_of(r.cell).startswith("from")]
    groups = grouped(learned, lambda cell: (cell.variant,))
    if not groups:
        return {}
    figure, axes = panels(len(groups))
    for ax, ((variant,), group) in zip(axes, groups.items(), strict=True):
        trajectories(ax, group, lambda cell: words(row_of(cell)))
        ax.set_title(variant.replace("_", " "))
    legend(figure)
    return {"trajectories": figure}


SLACK = {"accuracy": 0.01, "bound": 0.01}
"""Within which a learned rotation is as good as the best fixed one: accuracy, and nats per image."""


def low_starts(results: Sequence[Result], variant: str) -> list[Result]:
    learned = [r for r in results if row_of(r.cell).startswith("from") and r.cell.variant == variant]
    return [r for r in learned if start(r) <= LOW]


def _as_good(measure: Callable[[Sequence[Result]], list[float | None]], slack: float) -> Callable[..., Held]:
    """Compare the mean of the low starts with the best fixed rotation, by variant."""

    def check(results: Sequence[Result]) -> Held:
        fixed = [r for r in results if row_of(r.cell).startswith("fixed")]
        each, found = means(fixed, lambda c: (c.variant, row_of(c)), measure), {}
        for variant in ROTATIONS:
            best = max((v for (there, _), v in each.items() if there == variant), default=None)
            ours = mean_of(measure(low_starts(results, variant)))
            if best is not None and ours is not None:
                found[variant] = ours >= best - slack
        return found

    return check


def _finds(variant: str, holds: Callable[[float], bool]) -> Callable[..., Held]:
    def check(results: Sequence[Result]) -> Held:
        each = grouped(low_starts(results, variant), lambda c: (row_of(c),))
        return {words(row): holds(mean_of(map(width, group)) or 0.0) for (row,), group in each.items()}

    return check


FOUND = (
    Claim(f"full rotation is learned: at least {FULL:g} deg", _finds(ROTATIONS[0], lambda w: w >= FULL)),
    Claim(f"half rotation: within {NEAR:g} of 90 deg", _finds(ROTATIONS[1], lambda w: abs(w - 90) <= NEAR)),
    Claim("regular digits: less than 65 deg", _finds(ORIGINAL, lambda w: w < 90 - NEAR)),
)
AS_GOOD = (
    Claim(
        "learned from low starts, the bound is that of the best fixed rotation",
        _as_good(evidences, SLACK["bound"]),
        "half-rotated digits, with a prior of their own, prefer 175 to 90 degrees: wide averages are small and need "
        "larger weights, which only a shared prior charges for (tried at five priors and up to 10,000 images)",
    ),
    Claim(
        "learned from low starts, the accuracy is that of the best fixed rotation",
        _as_good(accuracies, SLACK["accuracy"]),
    ),
)


def trajectories(ax: Axes, results: Sequence[Result], name: Callable[[Cell], str]) -> None:
    """Draw rotations by epoch, first seed, the planted one dashed."""
    for (label,), group in grouped(results, lambda cell: (name(cell),)).items():
        start = float(group[0].cell.settings["widths"]["rotation"])
        ax.plot([start, *(v for v in group[0].curves["rotation"] if v is not None)], label=label)
    planted = results[0].invariance.widths["rotation"].planted
    if planted is not None:
        ax.axhline(planted, color="black", linestyle="--", linewidth=1, label="planted")
    ax.set(xlabel="epoch", ylabel="rotation, ± deg", ylim=(-5, 190), yticks=range(0, 181, 45))


def start(result: Result) -> int:
    return int(row_of(result.cell).partition("_")[2])
