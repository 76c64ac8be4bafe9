"""Does LILA beat the non-invariant network and Augerino? Differences seed by seed, on the same data."""

from collections.abc import Callable, Sequence

from papers.claims import Claim, Held, Measure
from papers.markdown import accuracies, grouped, mean_of
from papers.results import Cell, Result


def ahead(
    words: str, rival: str, by: Callable[[Cell], tuple[str, ...]], measure: Measure = accuracies, why: str = ""
) -> Claim:
    """Claim that LILA is ahead of a rival, in the mean over the seeds that both have."""

    def check(results: Sequence[Result]) -> Held:
        found = {}
        for key, group in grouped([r for r in results if r.cell.method in ("lila", rival)], by).items():
            ours, theirs = ([r for r in group if r.cell.method == m] for m in ("lila", rival))
            gain = mean_of(differences(ours, theirs, measure))
            if gain is not None:
                found[" ".join(key)] = gain > 0
        return found

    return Claim(words, check, why)


def differences(ours: Sequence[Result], theirs: Sequence[Result], measure: Measure) -> list[float | None]:
    """Return ours minus theirs, seed by seed."""
    other = {r.cell.seed: value for r, value in zip(theirs, measure(theirs), strict=True)}
    pairs = [(value, other.get(r.cell.seed)) for r, value in zip(ours, measure(ours), strict=True)]
    return [a - b for a, b in pairs if a is not None and b is not None]
