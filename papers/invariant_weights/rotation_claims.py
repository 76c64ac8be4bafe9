"""What must hold of learned rotations, and how often it does. Free of torch."""

from collections.abc import Callable, Sequence

from papers.cell import ORIGINAL, Result
from papers.invariant_weights.published import ROTATIONS
from papers.invariant_weights.settings import FIXED, row_of
from papers.invariant_weights.tables import by_row, mean_of
from papers.markdown import evidences, table

FULL = 160.0
"""Degrees that count as full invariance."""
NEAR = 25.0
"""Degrees from 90 that still count as found."""
CLEARLY = 20.0
"""Degrees that separate regular from partially rotated digits."""
LOW = 90
"""Starts up to here must succeed; the paper itself reports failures from wider ones."""


def width(result: Result) -> float:
    """Return the rotation of a run in degrees."""
    return result.invariance.widths["rotation"].value


def start(result: Result) -> int:
    """Return where the rotation of a run started."""
    return int(row_of(result.cell).partition("_")[2])


def claims(results: Sequence[Result]) -> str:
    """Return each statement with how many runs agree, for low starts and for all."""
    learned = [r for r in results if row_of(r.cell).startswith("from")]
    if not learned:
        return ""
    partial = {(start(r), r.cell.seed): width(r) for r in learned if r.cell.variant == ROTATIONS[1]}
    statements: list[tuple[str, str, Callable[[Result], bool | None]]] = [
        (ROTATIONS[0], f"at least {FULL:g} deg", lambda r: width(r) >= FULL),
        (ROTATIONS[1], f"within {NEAR:g} of 90 deg", lambda r: abs(width(r) - 90) <= NEAR),
        (
            ORIGINAL,
            f"at least {CLEARLY:g} deg less than on partially_rotated, from the same start",
            lambda r: _less(width(r), partial.get((start(r), r.cell.seed))),
        ),
    ]
    lines = []
    for variant, words, holds in statements:
        there = [r for r in learned if r.cell.variant == variant]
        lines.append([
            f"{variant}: {words}",
            _count([r for r in there if start(r) <= LOW], holds),
            _count(there, holds),
        ])
    head = ["learned rotation", f"starts up to {LOW} deg", "all starts"]
    return f"{table(head, lines)}\n{best_fixed(results)}"


def _less(here: float, there: float | None) -> bool | None:
    return None if there is None else here <= there - CLEARLY


def _count(results: Sequence[Result], holds: Callable[[Result], bool | None]) -> str:
    answers = [answer for answer in map(holds, results) if answer is not None]
    return f"{sum(answers)} of {len(answers)}"


def best_fixed(results: Sequence[Result]) -> str:
    """Say for each variant which fixed rotation has the best bound, and whether the learned one agrees."""
    rows, lines = by_row(results), []
    for variant in ROTATIONS:
        bounds = {a: mean_of(evidences(rows.get(f"fixed_{a}", {}).get(variant, []))) for a in FIXED}
        known = {a: bound for a, bound in bounds.items() if bound is not None}
        low = [r for r in results if row_of(r.cell).startswith("from") and r.cell.variant == variant]
        low = [r for r in low if start(r) <= LOW]
        found, bound = mean_of([width(r) for r in low]), mean_of(evidences(low))
        if not known or found is None or bound is None:
            continue
        best = max(known, key=lambda a: known[a])
        nearest = min(known, key=lambda a: abs(a - found))
        lines.append(
            f"- {variant}: the best fixed rotation by ELBO is {best} deg ({known[best]:.3f}); learned is {found:.1f} "
            f"deg ({bound:.3f}, {'at or above' if bound >= known[best] else 'below'} it), nearest to {nearest} deg: "
            f"{'they agree' if best == nearest else 'they disagree'}."
        )
    return "\n".join(lines) + "\n" if lines else ""
