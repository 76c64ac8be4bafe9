"""What a paper says, as comparisons that results can refute, and the numbers that both print. Free of torch.

Claims of a sign ("higher", "beats") neither hold nor fail within the standard error; those that name a margin are
judged by it.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from papers.markdown import NONE, accuracies, grouped, mean_of, mean_se, table
from papers.results import Cell, Result

Measure = Callable[[Sequence[Result]], list[float | None]]
Held = Mapping[str, bool | None]
"""Whether each comparison holds, by what is compared; None within the error; one without results is left out."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, made of one or more comparisons; or a question of our own about the same runs."""

    words: str
    check: Callable[[Sequence[Result]], Held]
    why: str = ""  # the reason, where some do not hold
    ours: bool = False  # not the paper's: shown beside its claims, and counted apart


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


def ahead(
    words: str,
    rival: str,
    by: Callable[[Cell], tuple[str, ...]],
    measure: Measure = accuracies,
    why: str = "",
    ours: str = "lila",
) -> Claim:
    """Claim that a method is ahead of a rival on the same data."""

    def check(results: Sequence[Result]) -> Held:
        found: dict[str, bool | None] = {}
        for key, group in grouped([r for r in results if r.cell.method in (ours, rival)], by).items():
            a, b = ([r for r in group if r.cell.method == method] for method in (ours, rival))
            if differences(a, b, measure):
                found[" ".join(key)] = beats(a, b, measure)
        return found

    return Claim(words, check, why)


def beats(ours: Sequence[Result], theirs: Sequence[Result], measure: Measure = accuracies) -> bool | None:
    """Return whether ours is above theirs in the mean over the seeds that both have; None within the standard error.

    Of one seed, the error of an accuracy is that of its test images; that of other measures is unknown, and 0 here.
    """
    gains = differences(ours, theirs, measure)
    mean, error = mean_se(gains) or (0.0, 0.0)
    if len(gains) == 1 and measure is accuracies and ours[0].cell.test_images:
        p = mean_of(accuracies([*ours, *theirs])) or 0.0
        error = math.sqrt(2 * p * (1 - p) / ours[0].cell.test_images)
    return None if abs(mean) <= error else mean > 0


def differences(ours: Sequence[Result], theirs: Sequence[Result], measure: Measure) -> list[float]:
    """Return ours minus theirs, seed by seed."""
    other = {r.cell.seed: value for r, value in zip(theirs, measure(theirs), strict=True)}
    pairs = [(value, other.get(r.cell.seed)) for r, value in zip(ours, measure(ours), strict=True)]
    return [a - b for a, b in pairs if a is not None and b is not None]


def counted(answers: Collection[bool | None]) -> str:
    """Write how many comparisons hold, of those that are decided."""
    decided = [answer for answer in answers if answer is not None]
    near = len(answers) - len(decided)
    return f"{sum(decided)} of {len(decided)}" + (f", {near} within the error" if near else "")


def pairs(measure: str, ours: Mapping[Any, float], theirs: Mapping[Any, Any], factor: float = 1) -> list[Pair]:
    """Return the numbers that both have."""
    return [Pair(measure, factor * value, theirs[key]) for key, value in ours.items() if theirs.get(key) is not None]


def section(claims: Sequence[Claim], results: Sequence[Result]) -> str:
    """Return every claim, in how many comparisons it holds, and in which it does not."""
    rows = []
    for claim in claims:
        if held := claim.check(results):
            wrong = "; ".join(name for name, answer in held.items() if answer is False)
            rows.append([claim.words, counted(held.values()), wrong or NONE])
    return f"{table(['the paper says', 'holds in', 'but not in'], rows)}\n" if rows else ""
