"""Means with standard errors, and tables in Markdown."""

import math
from collections.abc import Callable, Iterable, Sequence

from papers.cell import Cell, Result

NONE = "-"


def mean_se(values: Iterable[float | None]) -> tuple[float, float] | None:
    """Return the mean and its standard error."""
    known = [v for v in values if v is not None]
    if not known:
        return None
    mean = math.fsum(known) / len(known)
    if len(known) == 1:
        return mean, 0.0
    variance = math.fsum((v - mean) ** 2 for v in known) / (len(known) - 1)
    return mean, math.sqrt(variance / len(known))


def spread(values: Sequence[float | None], digits: int = 2, factor: int = 1) -> str:
    """Write mean and standard error."""
    found = mean_se(values)
    if found is None:
        return NONE
    mean, error = found
    alone = sum(v is not None for v in values) == 1
    return f"{factor * mean:.{digits}f}" + ("" if alone else f" ± {factor * error:.{digits}f}")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def grouped(
    results: Sequence[Result], by: Callable[[Cell], tuple[str, ...]]
) -> dict[tuple[str, ...], list[Result]]:
    """Gather the results that differ in their seed only."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(by(result.cell), []).append(result)
    return groups


def accuracies(results: Sequence[Result]) -> list[float | None]:
    """Return the test accuracies."""
    return [r.invariance.test_accuracy for r in results]


def evidences(results: Sequence[Result]) -> list[float | None]:
    """Return the log evidences per training example."""
    return [None if r.invariance.log_evidence is None else r.invariance.log_evidence / r.N for r in results]


def seconds(results: Sequence[Result]) -> list[float | None]:
    """Return the training times."""
    return [r.invariance.seconds for r in results]
