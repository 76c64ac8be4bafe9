"""What paper B's tables have in common: rows of models, columns of data sets, ours above the paper's. Free of torch."""

from collections.abc import Sequence

from papers.claims import Pair, means, pairs
from papers.invariant_weights.budgets import row_of
from papers.invariant_weights.published import Scores
from papers.markdown import NONE, accuracies, evidences, grouped, spread, table
from papers.results import Cell, Result

WORDS = {
    "sgpr": "SGPR",
    "none": "no invariance",
    "point": "maximum likelihood",
    "grid": "learned, equally spaced views",
}

FOLLOWS = (
    "the first layer follows a width that moves with a delay: from 0 the rotation goes to 180 degrees and back to 92, "
    "and its bound is .035 nats below that of the best fixed one after 25 epochs, .024 after 60 (a trial); from 45, "
    ".016 and .009"
)
"""Why the ReLU network, which learns its first layer, ends below the bound of the best fixed width."""


def words(row: str) -> str:
    """Return what a row is called in a table."""
    kind, _, degrees = row.partition("_")
    if kind == "fixed":
        return f"fixed {degrees} deg"
    if kind == "from":
        return f"learned from {degrees} deg"
    return WORDS.get(row, f"+ {row}")


def by_row(results: Sequence[Result]) -> dict[str, dict[str, list[Result]]]:
    """Gather results by row, then by variant."""
    found: dict[str, dict[str, list[Result]]] = {}
    for (row, variant), group in grouped(results, lambda cell: (row_of(cell), cell.variant)).items():
        found.setdefault(row, {})[variant] = group
    return found


def scores(results: Sequence[Result], variants: Sequence[str], paper: Scores, bounds: bool = True) -> str:
    """Return test accuracy and bound of every row, ours above the paper's."""
    lines = []
    for row, at in by_row(results).items():
        groups = [at.get(variant, []) for variant in variants]
        ours = [spread(accuracies(group), 2, 100) for group in groups]
        theirs = [_number(paper.get((row, variant)), 0) for variant in variants]
        if bounds:
            ours += [spread(evidences(group), 3) for group in groups]
            theirs += [_number(paper.get((row, variant)), 1) for variant in variants]
        lines += [[words(row), "ours", *ours], ["", "paper", *theirs]]
    head = [f"accuracy, {variant}" for variant in variants]
    head += [f"ELBO, {variant}" for variant in variants] if bounds else []
    return table(["model", "whose", *head], lines)


def numbers(results: Sequence[Result], paper: Scores) -> list[Pair]:
    """Return the accuracies and bounds that both have."""

    def by(cell: Cell) -> tuple[str, str]:
        return row_of(cell), cell.variant

    accuracy = pairs("test accuracy, %", means(results, by), {k: v[0] for k, v in paper.items()}, 100)
    bounds = pairs("ELBO per image", means(results, by, evidences), {k: v[1] for k, v in paper.items()})
    return accuracy + bounds


def _number(pair: tuple[float, float | None] | None, which: int) -> str:
    value = None if pair is None else pair[which]
    return NONE if value is None else f"{value:.2f}"


def data_line(results: Sequence[Result]) -> str:
    """Say on what was trained, beside the paper."""
    source = results[0].invariance.data.split(",")[0]
    units = next((r.cell.settings["network"]["units"] for r in results if "network" in r.cell.settings), 0)
    return (
        f"Accuracy on the test set in per cent, ELBO in nats per training image. Ours: {results[0].N:,} images of "
        f"{source}, {units} units. The paper: all images, 1,024 units, one run each."
    )
