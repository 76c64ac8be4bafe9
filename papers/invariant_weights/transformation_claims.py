"""What the paper says of models that may learn different transformations, and whether it holds. Free of torch."""

from collections.abc import Sequence

from papers.cell import Result
from papers.invariant_weights.settings import TRANSFORMATIONS
from papers.invariant_weights.tables import by_row, mean_of, words
from papers.markdown import accuracies, table

NEAR = 0.01
"""Accuracy that counts as near the best: two standard errors at 2,000 test images and 95 %."""
WITHOUT = ("none", "sgpr")
"""Models that learn no invariance."""


def claims(results: Sequence[Result]) -> str:
    """Return, column by column, which model is best, and how the affine one and those without invariance stand."""
    rows, lines, near, above = by_row(results), [], [], []
    for variant in dict.fromkeys(r.cell.variant for r in results):
        found = {row: mean_of(accuracies(at.get(variant, []))) for row, at in rows.items()}
        known = {row: value for row, value in found.items() if value is not None}
        learned = {row: value for row, value in known.items() if row in TRANSFORMATIONS}
        if "affine" not in known or not learned:
            continue
        best = max(known, key=lambda row: known[row])
        behind = known[best] - known["affine"]
        near.append(behind <= NEAR)
        others = [known[row] for row in WITHOUT if row in known]
        above += [max(learned.values()) > value for value in others]
        lines.append([variant, words(best), f"{100 * known[best]:.2f}", f"{100 * behind:.2f}"])
    if not lines:
        return ""
    head = ["data", "best model", "its accuracy, %", "affine behind it, points"]
    return (
        f"{table(head, lines)}\nThe affine model is best, or within {100 * NEAR:g} point of it, in {sum(near)} of "
        f"{len(near)} columns. The best learned invariance beats a model without any in {sum(above)} of {len(above)} "
        f"comparisons.\n"
    )
