"""What `augury adapt` does once its options are known to be sound; loads torch."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from augury.cli.console import err, out, print_json
from augury.cli.reporting import leave_report
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.methods.hyper.adapt import Tell, adapt, load_extractor
from augury.records.results import INVARIANT, SENSITIVE, Adaptation

WIDTH = 24
"""Characters of a full bar."""


@dataclass(frozen=True)
class Request:
    """All that was asked for."""

    extractor: Path
    """The extractor."""
    source: str
    """The data."""
    reading: dict[str, Any]
    """How to read them: keywords of `load`."""
    descriptor: dict[str, float] | None
    """Entries by group, where they are given."""
    settings: dict[str, Any]
    """Fields of `AdaptConfig`."""
    folder: Path | None
    """The run's folder, where one is wanted."""
    overwrite: bool
    """Replace what stands there."""


def carry_out(request: Request, *, as_json: bool, quiet: bool) -> None:
    """Read extractor and data, adapt, and show what was learned."""
    extractor = load_extractor(request.extractor)  # complains before a long read
    with _watching(quiet) as tell:
        data = load(request.source, **request.reading)
        found = adapt(
            extractor,
            data,
            origin=str(request.extractor),
            descriptor=request.descriptor,
            run=request.folder,
            overwrite=request.overwrite,
            tell=tell,
            **request.settings,
        ).adaptation
    report = None if request.folder is None else str(leave_report(request.folder))
    if as_json:
        print_json({**found.to_json(), "skipped": len(data.skipped), "report": report})
        return
    out.print(summary(found, data))
    if request.folder is not None and not quiet:
        where = f"The adapted model is in {request.folder}, its report in {report}"
        out.print(where, highlight=False, soft_wrap=True)


@contextmanager
def _watching(quiet: bool) -> Iterator[Tell | None]:
    if quiet:
        yield None
        return
    with err.status("reading") as status:

        def tell(descriptor: Mapping[str, float], value: float) -> None:
            entries = ", ".join(f"{name} {entry:.2f}" for name, entry in descriptor.items())
            status.update(f"tried {entries}: {value:.1f}")

        yield tell


def summary(found: Adaptation, data: Dataset) -> RenderableType:
    """Return all that `augury adapt` shows."""
    return Group(
        _bars(found),
        Text(f"This task: {found.words}.", style="bold"),
        "",
        _facts(found, data),
        "",
        _bound(found),
    )


def _bars(found: Adaptation) -> Table:
    table = Table(box=None, pad_edge=False, title=_title(found), title_justify="left")
    for column in ("group", "sensitive " + " " * (WIDTH - 19) + "invariant", "", ""):
        table.add_column(column, no_wrap=True)
    for name, value in found.descriptor.items():
        full = round(WIDTH * value)
        colour = "green" if value >= INVARIANT else "red" if value <= SENSITIVE else "yellow"
        bar = Text("█" * full, colour).append("░" * (WIDTH - full), "dim")
        verdict = {"green": "invariant", "red": "sensitive", "yellow": "in between"}[colour]
        table.add_row(name, bar, f"{value:.2f}", verdict)
    return table


def _title(found: Adaptation) -> str:
    by = "as given" if found.criterion == "given" else f"chosen by {found.criterion}"
    levels = "" if found.levels is None else f", {found.levels} levels"
    return f"Descriptor, {by}{levels}"


def _facts(found: Adaptation, data: Dataset) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    what = "classes" if found.task == "classification" else "numbers"
    rows = {
        "head": f"{found.features} features to {data.n_outputs} {what}, prior precision {found.delta:.3g}",
        found.score_name: f"{_score(found, found.score)} ({found.scored_on})",
    }
    if found.scored_on == "test" and found.held_out is not None:
        rows["held-out estimate"] = f"{_score(found, found.held_out)} (from the training examples)"
    rows["on training"] = f"{_score(found, found.train_score)} of {found.N} examples"
    rows["log evidence"] = "-" if found.log_evidence is None else f"{found.log_evidence:.1f}"
    rows["seconds"] = f"{found.seconds:.1f}"
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _score(found: Adaptation, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.1f} %" if found.score_name == "accuracy" else f"{value:.3f}"


def _bound(found: Adaptation) -> Table:
    b = found.bound
    sure = f"{100 * (1 - b.failure):g}"
    table = Table(
        box=None, pad_edge=False, title=f"Bound on the {b.loss} loss, {sure} % sure", title_justify="left"
    )
    for column in ("training", "head: 2XB/sqrt(n)", "choice of descriptor", "together"):
        table.add_column(column, justify="right")
    nothing = "" if b.total < 1 else " (says nothing)"
    table.add_row(f"{b.risk:.3f}", f"{b.complexity:.3f}", f"{b.choice:.3f}", f"{b.total:.3f}{nothing}")
    return table
