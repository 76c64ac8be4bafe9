"""The audit's verdicts on runs that were not looked at when their limits were chosen.

The limits were set beside runs on MNIST, seed 0. Here they meet other seeds, Fashion-MNIST and KMNIST. What
each method should get was written down before these runs: a tied network is genuine; one trained on transformed copies
holds where it was trained; one whose logits were pulled together until SI >= 0.95 is genuine; one that has never seen a
transformed image is sensitive.
"""

from collections.abc import Sequence
from dataclasses import replace

from augury.data.named import find
from papers.catalog import Item
from papers.genuine.runs import EPOCHS, METHODS, audit_of, by_row, cells, lengths, run, value
from papers.learning import digits
from papers.markdown import grouped, spread, table
from papers.results import Cell, Result

EXPECTED = {
    "weight_tied": "genuine",
    "data_augmented": "only on the training distribution",
    "regularised": "genuine",
    "plain": "sensitive",
}
"""By method."""

PLAIN = {"evidence": "none", "rate": 8e-4, "rate_end": 8e-4, "batch": 512, "weight_decay": 0.0}
"""The bare network, trained as the three methods are."""

OTHERS = {"fashion_mnist": (10_000, 40), "kmnist10k": (None, 50)}
"""Other data at scale `small`: images and epochs, for a third of the steps that MNIST gets."""

SWEEPS = {
    "far": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5),
    "keep": (0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
    "SI": (0.8, 0.85, 0.9, 0.93, 0.95, 0.97),
}
"""Where each limit is moved to, the others staying where they are."""


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs of the table, the bare network beside them, and the same on other data."""
    found = _cells(scale, seeds, digits(scale))
    for data, (images, epochs) in OTHERS.items() if scale != "quick" else ():
        if scale == "paper":
            found += _cells(scale, seeds, data)
        elif find(data) is not None:
            found += [_shorter(cell, images, epochs) for cell in _cells(scale, seeds, data)]
    return found


def _cells(scale: str, seeds: Sequence[int], data: str) -> list[Cell]:
    """Return the runs on one data set; of the regularised network only the longer, which gets to SI >= 0.95."""
    every = cells(scale, seeds, data, [*METHODS, "plain"])
    longest = [c for c in every if c.settings["epochs"] == lengths(scale, c.algorithm)[-1]]
    return [replace(c, settings={**PLAIN, **c.settings}) if c.algorithm == "plain" else c for c in longest]


def _shorter(cell: Cell, images: int | None, epochs: int) -> Cell:
    longer = cell.settings["epochs"] // EPOCHS["small"]
    return replace(cell, subset=images, settings={**cell.settings, "epochs": longer * epochs})


def rejudged(result: Result, **moved: float) -> str:
    """Return the verdict that other limits would have given."""
    from augury.auditing.verdict import decide
    from augury.config.audit import LIMITS

    audit = audit_of(result)
    constant = audit.LI_relative is None
    return decide(audit.group, audit.scores, audit.noise_floor, audit.drift, constant, replace(LIMITS, **moved)).verdict


def write(results: Sequence[Result]) -> str:
    rows = [[key[0], key[1], key[3], *_line(key[2], runs)] for key, runs in grouped(results, by_row).items()]
    head = ["data", "group", "method", "SI", "LI / spread", "agreement, %", "worst drift: LI / spread"]
    as_expected = sum(audit_of(r).verdict == EXPECTED[r.cell.algorithm] for r in results)
    return (
        f"{ABOUT}\n{table([*head, 'agreement, %', 'verdict', 'expected', 'as expected'], rows)}\n"
        f"In all {as_expected} of {len(results)} verdicts are as expected. "
        f"With one limit moved, the others where they are:\n\n"
        f"{_sweeps(results)}"
    )


def _line(method: str, runs: list[Result]) -> list[str]:
    audits = [audit_of(r) for r in runs]
    verdicts, expected = [a.verdict for a in audits], EXPECTED[method]
    kept = [min((value(s.agreement) or 0.0 for s in a.drift.values()), default=None) for a in audits]
    return [
        spread([value(a.SI) for a in audits], 3),
        spread([a.LI_relative for a in audits], 4),
        spread([value(a.agreement) for a in audits], 1, 100),
        spread([max((s.LI_relative or 0.0 for s in a.drift.values()), default=None) for a in audits], 3),
        spread(kept, 1, 100),
        ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts)),
        expected,
        f"{verdicts.count(expected)} of {len(verdicts)}",
    ]


def _sweeps(results: Sequence[Result]) -> str:
    from augury.config.audit import LIMITS

    rows = []
    for name, places in SWEEPS.items():
        for place in places:
            right = [rejudged(r, **{name: place}) == EXPECTED[r.cell.algorithm] for r in results]
            mark = " (ours)" if place == getattr(LIMITS, name) else ""
            rows.append([name, f"{place:g}{mark}", f"{sum(right)} of {len(right)}"])
    return table(["limit", "at", "verdicts as expected"], rows)


ABOUT = """What each method should get was written down before these runs; the limits are those of every audit.
`worst drift` is the worst of the corrupted copies and the other data set. Only runs on MNIST, seed 0, were seen when
the limits were chosen.
"""

ITEM = Item("The audit's verdicts on data, groups and seeds that did not shape its limits.", grid, write, run=run)
"""Ours, not the paper's: it has no claims."""
