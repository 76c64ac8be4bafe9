"""What was learned, as tables for a person."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from augury.records.results import Invariance, Width


def number(value: float | None, unit: str) -> str:
    """Write a width as a person would."""
    if value is None:
        return "-"
    if unit == "factor":
        return f"x {value:.2f}"
    return f"{value:.1f} {unit}" if unit else f"{value:.2f}"


def widths_table(widths: dict[str, Width]) -> Table:
    """Return every width beside the truth, where one was planted."""
    intervals = any(width.low is not None for width in widths.values())
    table = Table(title="How far the labels stay the same", title_justify="left")
    table.add_column("generator")
    table.add_column("learned: +-", justify="right")
    if intervals:
        table.add_column("95 % interval", justify="right")
    table.add_column("planted: +-", justify="right")
    table.add_column("verdict")
    for name, w in widths.items():
        interval = [f"{number(w.low, w.unit)} to {number(w.high, w.unit)}"] if intervals else []
        table.add_row(name, number(w.value, w.unit), *interval, number(w.planted, w.unit), w.verdict)
    return table


def scores_table(runs: list[Invariance]) -> Table:
    """Return the scores of a method and of its baseline, one below the other."""
    regression = any(run.test_error is not None for run in runs)
    evidence = any(run.log_evidence is not None for run in runs)
    table = Table(title="On the test set", title_justify="left")
    table.add_column("method")
    table.add_column("network")
    table.add_column("test error (RMSE)" if regression else "test accuracy", justify="right")
    if evidence:
        table.add_column("log evidence", justify="right")
    table.add_column("seconds", justify="right")
    for run in runs:
        score = f"{run.test_error:.4f}" if run.test_error is not None else _percent(run.test_accuracy)
        middle = [f"{run.log_evidence:.1f}" if run.log_evidence is not None else "-"] if evidence else []
        table.add_row(run.method, run.model, score, *middle, f"{run.seconds:.0f}")
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def summary(runs: list[Invariance]) -> RenderableType:
    """Return all that `augury learn` shows at its end."""
    parts: list[RenderableType] = [widths_table(runs[0].widths)] if runs[0].widths else []
    return Group(*parts, scores_table(runs), *(Text(note) for run in runs for note in run.notes))
