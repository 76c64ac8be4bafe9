"""What `augury audit` does once its options are known to be sound; loads torch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from augury.auditing.audit import examine
from augury.auditing.worst import leave_audit, save_worst
from augury.cli.console import err, out, print_json
from augury.cli.reporting import leave_report
from augury.core.errors import InputError
from augury.records.results import Audit, Measure, Scores


@dataclass(frozen=True)
class Request:
    """All that was asked for."""

    model: str
    """Where the model is."""
    data: str
    """The data."""
    group: str | None
    """What it should be invariant to."""
    widths: dict[str, float]
    """How far to go, in units."""
    drift: list[str]
    """Other data."""
    architecture: str | None
    """The network of a .safetensors."""
    trust: bool
    """Load files that can run code."""
    settings: dict[str, Any]
    """Fields of `AuditConfig`."""
    above: dict[str, float]
    """Upper limits, by figure."""
    below: dict[str, float]
    """Lower limits, by figure."""
    pictures: Path | None
    """Where to write the worst inputs."""
    folder: Path
    """Where to write all that was found, and the report."""


def carry_out(request: Request, *, as_json: bool, quiet: bool) -> bool:
    """Audit, and show what came of it."""
    drift = {Path(source).stem: source for source in request.drift}
    with _bar(quiet) as step:
        seen = examine(
            request.model, request.data, request.group, widths=request.widths, drift=drift,
            architecture=request.architecture, trust=request.trust, step=step, **request.settings,
        )  # fmt: skip
    if request.pictures is not None:
        save_worst(request.pictures, seen.cases)
    leave_audit(request.folder, seen)
    report = leave_report(request.folder)
    if as_json:
        print_json({**seen.audit.to_json(), "report": str(report)})
    else:
        out.print(summary(seen.audit))
    passed = beyond(seen.audit, request.above, request.below)
    for message in passed:
        err.print(message, style="red", soft_wrap=True, highlight=False)
    if request.pictures is not None and not quiet:
        err.print(f"The worst inputs are in {request.pictures}", highlight=False, soft_wrap=True)
    if not quiet:
        err.print(
            f"The audit is in {request.folder}, its report in {report}", highlight=False, soft_wrap=True
        )
    return not passed


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=err, transient=True, disable=quiet) as bar:
        task = bar.add_task("", total=None)

        def step(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield step


def beyond(audit: Audit, above: dict[str, float], below: dict[str, float]) -> list[str]:
    """Return a message for every limit that was passed."""
    messages = []
    for limits, word, sign in ((above, "above", 1), (below, "below", -1)):
        for name, limit in limits.items():
            value = _value(audit, name)
            if sign * (value - limit) > 0:
                messages.append(f"{name} is {value:.4g}, {word} the limit of {limit:g}.")
    return messages


def _value(audit: Audit, name: str) -> float:
    figure = getattr(audit, name)
    if figure is None:
        raise InputError(f"{name} has no limit to keep: this model and these data have no such figure.")
    return figure.value if isinstance(figure, Measure) else float(figure)


def summary(audit: Audit) -> Group:
    """Return all that `augury audit` shows."""
    head = [f"[bold]{audit.group}: {audit.verdict}[/]", audit.why, audit.advice, ""]
    rows = {"as they are": audit.scores, "noise floor": audit.noise_floor, **audit.drift}
    strengths = {f"{p.strength:g} {p.unit}": p.scores for p in audit.curve}
    parts: list[Any] = [*head, _table(f"On {audit.images} inputs of {audit.data}", "inputs", rows)]
    parts.append(_table("By strength", "moved by", strengths))
    if audit.per_class:
        parts.append(_table("By class", "class", audit.per_class))
    if audit.worst:
        parts.append(_worst(audit))
    if audit.sigma_max_jacobian is not None:
        parts.append(f"Largest singular value of the Jacobian: {audit.sigma_max_jacobian:.3g}")
    return Group(*parts)


def _table(title: str, first: str, rows: dict[str, Scores]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for column in ("LI", "relative", "DI", "SI", "agreement"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, s in rows.items():
        relative = "-" if s.LI_relative is None else f"{s.LI_relative:.3f}"
        DI = "-" if s.DI is None else f"{s.DI.value:.2g}"
        agreement = "-" if s.agreement is None else f"{100 * s.agreement.value:.1f} %"
        table.add_row(name, _text(s.LI, ".3g"), relative, DI, _text(s.SI, ".3f"), agreement)
    return table


def _text(measure: Measure | None, form: str) -> str:
    if measure is None:
        return "-"
    error = "" if measure.stderr is None else f" +- {measure.stderr:.1g}"
    return f"{measure.value:{form}}{error}"


def _worst(audit: Audit) -> Table:
    columns = ("input", "class", "says", "moved by", "then says", "LI", "SI")
    table = Table(*columns, title="The worst inputs", title_justify="left", box=None, pad_edge=False)
    unit = audit.curve[0].unit
    for w in audit.worst:
        SI = "-" if w.SI is None else f"{w.SI:.2f}"
        moved = f"{w.strength:g} {unit}"
        table.add_row(
            str(w.index), w.label or "-", w.prediction, moved, w.prediction_moved, f"{w.LI:.3g}", SI
        )
    return table
