"""What the table and the figures read from a result of paper D."""

from collections.abc import Callable, Sequence
from typing import Any

from augury.records.results import Audit, Scores
from papers.cell import Cell, Result
from papers.genuine.settings import METHODS, group_of
from papers.markdown import grouped, mean_se
from papers.svg import Curve

TEST = "test"
"""What the audited set itself is called among the sets of the drift."""


def by_row(cell: Cell) -> tuple[str, ...]:
    """Return what the seeds of one row of a table have in common: data, group, method and what it is called."""
    return cell.data, group_of(cell), cell.algorithm, label(cell)


def label(cell: Cell) -> str:
    """Return the paper's name of a method."""
    name = METHODS.get(cell.algorithm, cell.algorithm)
    return f"{name} {cell.settings['epochs']}" if cell.algorithm == "regularised" else name


def audit_of(result: Result) -> Audit:
    """Return the audit of a run."""
    return Audit.from_json(result.extra["audit"])


def sets_of(result: Result) -> dict[str, Scores]:
    """Return the measures on the test set, on its corrupted copies and on other data."""
    found = audit_of(result)
    return {TEST: found.scores, **found.drift}


def value(measure: Any) -> float | None:
    """Return the mean of a measure, or None."""
    return getattr(measure, "value", measure)


def curves(
    results: Sequence[Result],
    ys: Callable[[Result], Sequence[float | None]],
    xs: Callable[[Result], Sequence[float]],
) -> list[Curve]:
    """Return a curve per method: means over seeds with their standard errors."""
    found = []
    for (name,), runs in grouped(results, lambda cell: (label(cell),)).items():
        x = xs(runs[0])
        rows = [list(ys(run)) for run in runs if len(ys(run)) == len(x)]
        points = [(at, mean_se(column)) for at, column in zip(x, zip(*rows, strict=True), strict=True)]
        known = [(at, point) for at, point in points if point is not None]
        found.append(Curve(name, [at for at, _ in known], [p[0] for _, p in known], [p[1] for _, p in known]))
    return found
