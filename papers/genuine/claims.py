"""What paper D's table and drift figure say, as statements that a seed can refute."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from augury.records.results import Audit
from papers.claims import Claim, Held
from papers.genuine.runs import METHODS, OTHER, audit_of, group_of, label, value
from papers.markdown import table
from papers.results import Result


@dataclass(frozen=True)
class Run:
    """One run as the statements see it: its test accuracy and its audit."""

    accuracy: float
    audit: Audit

    @property
    def SI(self) -> float:
        """Saliency similarity on the test set."""
        return value(self.audit.SI) or 0.0

    @property
    def sigma(self) -> float:
        """sigma_max(J)."""
        return self.audit.sigma_max_jacobian or 0.0

    def kept(self, data: str) -> float | None:
        """Return the agreement on other data."""
        return value(self.audit.drift[data].agreement) if data in self.audit.drift else None


Says = Callable[[Run, Run, Run], bool]

CLAIMS: tuple[tuple[str, Says], ...] = (
    ("WT is exact: LI below 1e-6, SI above 0.9999", lambda wt, da, ir: wt.audit.LI.value < 1e-6 and wt.SI > 0.9999),
    (
        "DA is nearer to WT in accuracy than to IR",
        lambda wt, da, ir: wt.accuracy - da.accuracy < da.accuracy - ir.accuracy,
    ),
    ("IR has the lowest accuracy", lambda wt, da, ir: ir.accuracy < min(wt.accuracy, da.accuracy)),
    ("IR has SI of 0.95 or more", lambda wt, da, ir: ir.SI >= 0.95),
    ("DA has SI at least 0.2 below IR's", lambda wt, da, ir: da.SI <= ir.SI - 0.2),
    ("DA has LI at least 100 times IR's", lambda wt, da, ir: da.audit.LI.value >= 100 * ir.audit.LI.value),
    ("IR has LI near 0: at most 1 % of the spread", lambda wt, da, ir: (ir.audit.LI_relative or 0.0) <= 0.01),
    ("sigma_max(J) of IR is at most 3/4 of DA's", lambda wt, da, ir: ir.sigma <= 0.75 * da.sigma),
    (
        "sigma_max(J) / size of IR is below DA's (ours: the paper does not divide)",
        lambda wt, da, ir: (ir.audit.sigma_max_relative or 0.0) < (da.audit.sigma_max_relative or 0.0),
    ),
)
"""In words, and as a test of the runs of WT, DA and IR on one seed."""


def _drift(data: str) -> tuple[tuple[str, Says], ...]:
    def below(run: Run, limit: float) -> bool:
        kept = run.kept(data)
        return kept is not None and kept < limit

    return (
        (f"on {data}, DA keeps fewer than 80 % of its predictions", lambda wt, da, ir: below(da, 0.8)),
        (f"on {data}, WT keeps all of them", lambda wt, da, ir: not below(wt, 0.9999)),
        (f"on {data}, IR keeps more of them than DA", lambda wt, da, ir: (ir.kept(data) or 0) > (da.kept(data) or 0)),
    )


def _most(says: Says, accuracy: bool) -> Callable[[Sequence[Result]], Held]:
    """Return a check that asks whether most seeds agree, by group; of IR the longest training counts.

    Accuracies are compared after equal training, the shortest of IR, as in the paper: all of them grow with it.
    """

    def check(results: Sequence[Result]) -> Held:
        held: dict[str, list[bool]] = {}
        for (column, _), trio in _trios(results).items():
            held.setdefault(column, []).append(says(*trio))
        rising = list(held)[::-1] if accuracy else list(held)  # lengths of IR; the last one of a group is taken
        last = {column.partition(",")[0]: column for column in rising}
        return {group: 2 * sum(held[column]) > len(held[column]) for group, column in last.items()}

    return check


WHY = {
    "on fashion_mnist, DA keeps": "81.6 % kept, 94.8 % on its own test images; the limit of 80 % is ours, the paper "
    "prints none; DA predicts one digit for 65 % of those images, seed 0"
}
"""Reasons for what does not hold, by how its words begin."""


def _reason(words: str) -> str:
    return next((why for beginning, why in WHY.items() if words.startswith(beginning)), "")


AUDITED = tuple(
    Claim(words, _most(says, "accuracy" in words), _reason(words), "(ours" in words) for words, says in CLAIMS
)
DRIFTED = tuple(Claim(words, _most(says, False), _reason(words)) for words, says in _drift("fashion_mnist"))


def claims(results: Sequence[Result]) -> str:
    """Return every statement and how many seeds agree with it, by group and length of IR."""
    trios = _trios(results)
    if not trios:
        return ""
    columns = list(dict.fromkeys(column for column, _ in trios))
    other = OTHER.get(results[0].cell.data)
    rows = []
    for words, says in (*CLAIMS, *(_drift(other) if other else ())):
        held = [[says(*trio) for (at, _), trio in trios.items() if at == column] for column in columns]
        rows.append([words, *(f"{sum(each)} of {len(each)}" for each in held)])
    return f"Seeds that agree with what the paper says:\n\n{table(['statement', *columns], rows)}"


def _trios(results: Sequence[Result]) -> dict[tuple[str, int], tuple[Run, Run, Run]]:
    """Return WT, DA and IR by column (the group and the epochs of IR) and seed."""
    found = {(group_of(r.cell), label(r.cell), r.cell.seed): r for r in results}
    trios = {}
    for (group, name, seed), r in found.items():
        two = [found.get((group, METHODS[method], seed)) for method in ("weight_tied", "data_augmented")]
        if r.cell.algorithm == "regularised" and None not in two:
            wt, da, ir = (Run(each.invariance.test_accuracy or 0.0, audit_of(each)) for each in (*two, r) if each)
            trios[f"{group}, {name}", seed] = wt, da, ir
    return trios
