"""Means with standard errors, and tables in Markdown."""

import math
from collections.abc import Callable, Iterable, Sequence

from papers.results import Cell, Result

NONE = "-"


def mean_se(values: Iterable[float | None]) -> tuple[float, float] | None:
    """Return the mean of what is known, and its standard error (0 for a single value)."""
    from scipy.stats import sem  # takes a second to import

    known = [v for v in values if v is not None]
    if not known:
        return None
    return math.fsum(known) / len(known), float(sem(known)) if len(known) > 1 else 0.0


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of what is known."""
    found = mean_se(values)
    return None if found is None else found[0]


def spread(values: Sequence[float | None], digits: int = 2, factor: int = 1) -> str:
    """Write mean and standard error."""
    found = mean_se(values)
    if found is None:
        return NONE
    mean, error = found
    alone = sum(v is not None for v in values) == 1
    return f"{factor * mean:.{digits}f}" + ("" if alone else f" ± {factor * error:.{digits}f}")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *rows))


def grouped(results: Sequence[Result], by: Callable[[Cell], tuple[str, ...]]) -> dict[tuple[str, ...], list[Result]]:
    """Gather the results that differ in their seed only."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(by(result.cell), []).append(result)
    return groups


def accuracies(results: Sequence[Result]) -> list[float | None]:
    return [r.invariance.test_accuracy for r in results]


def evidences(results: Sequence[Result]) -> list[float | None]:
    """Return the log evidences per training example."""
    return [None if r.invariance.log_evidence is None else r.invariance.log_evidence / r.N for r in results]


def rotation(group: Sequence[Result]) -> str:
    """Write the learned rotation beside the planted one."""
    widths = [r.invariance.widths["rotation"] for r in group]
    return f"{spread([w.value for w in widths], 1)} (planted {widths[0].planted:g})"


def scores(group: Sequence[Result]) -> list[str]:
    """Write test accuracy in per cent, log evidence per example, seconds."""
    return [spread(accuracies(group), 2, 100), spread(evidences(group), 3), seconds(group)]


def seconds(group: Sequence[Result]) -> str:
    return spread([r.invariance.seconds for r in group], 0)
