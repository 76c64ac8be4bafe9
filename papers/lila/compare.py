"""Does LILA beat the non-invariant network and Augerino? Differences seed by seed, on the same data."""

from collections.abc import Callable, Sequence

from papers.claims import Claim, Held, means
from papers.markdown import accuracies, evidences, grouped, mean_se, spread, table
from papers.results import Cell, Result

Key = tuple[str, ...]
Measure = Callable[[Sequence[Result]], list[float | None]]


def ahead(
    words: str, rival: str, by: Callable[[Cell], Key], measure: Measure = accuracies, why: str = ""
) -> Claim:
    """Claim that LILA is ahead of a rival wherever both have results."""

    def check(results: Sequence[Result]) -> Held:
        ours, theirs = (
            means([r for r in results if r.cell.method == method], by, measure) for method in ("lila", rival)
        )
        return {" ".join(key): ours[key] > theirs[key] for key in ours if key in theirs}

    return Claim(words, check, why)


def comparison(results: Sequence[Result]) -> str:
    """Return what LILA gains over the others on each data set, variant and network, and how often it does."""
    groups = grouped(results, lambda c: (c.data, c.variant, c.model, str(c.subset), c.method))
    settings = list(dict.fromkeys(key[:4] for key in groups))
    columns: list[tuple[str, str, Measure, int]] = [
        ("accuracy over plain, points", "plain", accuracies, 100),
        ("log evidence per image over plain", "plain", evidences, 1),
        ("accuracy over augerino, points", "augerino", accuracies, 100),
    ]
    gains = [
        [
            differences(groups.get((*key, "lila"), []), groups.get((*key, rival), []), measure)
            for key in settings
        ]
        for _, rival, measure, _ in columns
    ]
    if not any(any(column) for column in gains):
        return ""
    rows = [
        [key[0], key[2], key[1], *(spread(g[k], 2, c[3]) for g, c in zip(gains, columns, strict=True))]
        for k, key in enumerate(settings)
    ]
    counts = [f"{c[0].partition(',')[0]}: {_ahead(g)}" for g, c in zip(gains, columns, strict=True)]
    head = ["data", "network", "variant", *(c[0] for c in columns)]
    return (
        f"What LILA gains (means over seeds of paired differences):\n\n{table(head, rows)}\n"
        f"LILA is ahead in {'; '.join(counts)}.\n"
    )


def differences(ours: Sequence[Result], theirs: Sequence[Result], measure: Measure) -> list[float | None]:
    """Return ours minus theirs, seed by seed."""
    other = {r.cell.seed: value for r, value in zip(theirs, measure(theirs), strict=True)}
    pairs = [(value, other.get(r.cell.seed)) for r, value in zip(ours, measure(ours), strict=True)]
    return [a - b for a, b in pairs if a is not None and b is not None]


def _ahead(gains: Sequence[Sequence[float | None]]) -> str:
    means = [found[0] for found in map(mean_se, gains) if found is not None]
    return f"{sum(m > 0 for m in means)} of {len(means)}"
