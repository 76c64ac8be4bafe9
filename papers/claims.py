"""What a paper says, as comparisons that results can refute, and the numbers that both print. Free of torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from papers.markdown import NONE, accuracies, grouped, mean_of, table
from papers.results import Cell, Result

Measure = Callable[[Sequence[Result]], list[float | None]]
Held = dict[str, bool]
"""Whether each comparison holds, by what is compared; one without results is left out."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, made of one or more comparisons."""

    words: str
    check: Callable[[Sequence[Result]], Held]
    why: str = ""  # the reason, where some do not hold


@dataclass(frozen=True)
class Pair:
    """A number that both have: what it is, ours, the paper's."""

    measure: str
    ours: float
    theirs: float


def means(results: Sequence[Result], by: Callable[[Cell], Any], measure: Measure = accuracies) -> dict[Any, float]:
    """Return the mean over seeds of each group that has results."""
    found = {key: mean_of(measure(group)) for key, group in grouped(results, by).items()}
    return {key: value for key, value in found.items() if value is not None}


def pairs(measure: str, ours: Mapping[Any, float], theirs: Mapping[Any, Any], factor: float = 1) -> list[Pair]:
    """Return the numbers that both have."""
    return [Pair(measure, factor * value, theirs[key]) for key, value in ours.items() if theirs.get(key) is not None]


def section(claims: Sequence[Claim], results: Sequence[Result]) -> str:
    """Return every claim, in how many comparisons it holds, and in which it does not."""
    rows = []
    for claim in claims:
        if held := claim.check(results):
            wrong = "; ".join(name for name, answer in held.items() if not answer)
            rows.append([claim.words, f"{sum(held.values())} of {len(held)}", wrong or NONE])
    return f"{table(['the paper says', 'holds in', 'but not in'], rows)}\n" if rows else ""
