"""Output of the command line: results on standard output; progress, remarks and errors on standard error."""

import json
import os
import platform
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer
from rich.box import HEAVY_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from augury import __version__
from augury.core.files import write_text
from augury.records.results import Width
from augury.training.progress import Progress
from augury.training.run_folder import COMMAND

out = Console()  # results: tables, or with --json one JSON object and nothing else
err = Console(stderr=True)  # progress, remarks and errors


def say(text: str, console: Console = out) -> None:
    """Print a line as it is, however long."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def note(text: str, style: str = "yellow") -> None:
    """Print a remark on standard error."""
    err.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def say_error(error: Exception) -> None:
    """Print an error's message in red."""
    err.print(Text.assemble(("error: ", "bold red"), (str(error), "red")), soft_wrap=True)


def print_json(values: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(values, indent=2, allow_nan=False))


@contextmanager
def interruptible(advice: str = "") -> Iterator[None]:
    """Turn Ctrl-C, SIGTERM and SIGHUP into a message, and into exit code 128 plus the signal's number."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt(number)

    others = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [number for number in others if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    except KeyboardInterrupt as came:
        number = came.args[0] if came.args else signal.SIGINT
        note(f"Interrupted ({signal.Signals(number).name}). {advice}".strip())
        raise typer.Exit(128 + number) from None
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def leave_report(folder: Path) -> Path:
    """Write the command and what it ran on to a run's folder, and a report that shows them."""
    from augury.report.page import write_report

    words = ["augury", *(word for word in sys.argv[1:] if word not in ("--resume", "--overwrite"))]
    facts = {
        "command": shlex.join(words),
        "augury": __version__,
        "python": platform.python_version(),
        "torch": version("torch"),
        "numpy": version("numpy"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    write_text(folder / COMMAND, json.dumps(facts, indent=2) + "\n")
    return write_report(folder)


def read_data(reader: Callable[..., Any], source: str, quiet: bool, **reading: Any) -> Any:
    """Read data with a spinner; say what was read, which files were skipped, and which options had no effect."""
    if quiet:
        return reader(source, **reading)
    with err.status(f"reading {source}") as status:

        def show(what: str, done: int, total: int) -> None:
            status.update(f"{what} {done}/{total}" if total else what)

        data = reader(source, progress=show, **reading)
    note(f"Read {data.source}: {data.describe()}", style="default")
    if data.skipped:
        note(f"skipped {plural(len(data.skipped), 'file')} that cannot be read, such as {data.skipped[0]}")
    fraction = reading.get("test_fraction")
    if fraction is not None and not data.split:
        own = f"the data have a test set of their own, {plural(len(data.x_test), 'example')}"
        note(f"--test-fraction {fraction:g} has no effect: {own}")
    return data


def plural(n: int, what: str) -> str:
    """Write "1 epoch", "2 epochs"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def gigabytes(size: int | None) -> str:
    """Write a number of bytes."""
    if size is None:
        return "unknown"
    return f"{size / 2**30:.1f} GB" if size >= 2**30 else f"{size / 2**20:.0f} MB"


def duration(seconds: float) -> str:
    """Write a time."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def number(value: float | None, unit: str) -> str:
    """Write a width in its unit."""
    if value is None:
        return "-"
    if unit == "factor":
        return f"x {value:.2f}"
    return f"{value:.1f} {unit}" if unit else f"{value:.2f}"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def interval(low: float | None, high: float | None, unit: str) -> str:
    """Write an interval, which may have no upper end."""
    if low is None:
        return "-"
    return f"at least {number(low, unit)}" if high is None else f"{number(low, unit)} to {number(high, unit)}"


def table(
    title: str, columns: Iterable[str], rows: Iterable[Sequence[Any]], *, left: int = 1, frame: bool = True
) -> Table:
    """Return a table whose first columns are flush left; brackets in its cells are not markup."""
    box = HEAVY_HEAD if frame else None
    made = Table(title=Text(title, "table.title"), title_justify="left", box=box, pad_edge=frame)
    for k, name in enumerate(columns):
        made.add_column(Text(name), justify="left" if k < left else "right", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def facts_table(rows: Mapping[str, str]) -> Table:
    """Return names and values without a frame."""
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(no_wrap=True, style="bold")
    made.add_column(overflow="fold")
    for name, value in rows.items():
        made.add_row(Text(name), Text(value))
    return made


def widths_table(widths: Mapping[str, Width]) -> Table:
    """Return every width with its interval, beside the planted truth if there is one."""
    columns: dict[str, Callable[[str, Width], str]] = {
        "generator": lambda name, w: name,
        "width": lambda name, w: number(w.value, w.unit),
    }
    if any(w.low is not None for w in widths.values()):
        columns["95 % interval"] = lambda name, w: interval(w.low, w.high, w.unit)
    if any(w.planted is not None for w in widths.values()):
        columns["planted"] = lambda name, w: number(w.planted, w.unit)
    columns["verdict"] = lambda name, w: w.verdict
    rows = [[write(name, w) for write in columns.values()] for name, w in widths.items()]
    given = all(w.verdict == "given" for w in widths.values())
    title = "The widths that were given" if given else "How far the labels stay the same"
    made = table(f"{title}, plus or minus", columns, rows)
    made.columns[-1].justify = "left"
    return made


class Notes(Progress):
    """Prints what the user should know."""

    def note(self, text: str) -> None:
        note(text)


class Left(ProgressColumn):
    """The time until the run has ended, if it was told; otherwise until the bar is full."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        end = task.fields.get("end")
        left = task.time_remaining if end is None else max(0.0, end - task.get_time())
        return Text("-:--:--" if left is None else str(timedelta(seconds=round(left))), "progress.remaining")


class LiveBar(Notes):
    """Draws a bar for each stage of a run and, below it, what will follow, and the latest loss, evidence and widths."""

    def __init__(self, compares: bool = False, said: str = "") -> None:
        self.compares = compares  # whether a baseline follows
        self.said = said  # after the method's name
        self.coming, self.numbers, self.below = list[str](), "", Text()

    def for_baseline(self) -> "LiveBar":
        return LiveBar(said=", to compare")

    def ahead(self, stages: Sequence[str]) -> None:
        self.coming = [*stages, *(["plain to compare"] if self.compares else [])]
        self._write()

    def _write(self) -> None:
        then = f"then: {', '.join(self.coming)}" if self.coming else ""
        self.below.plain = "\n".join(filter(None, (then, self.numbers)))

    def start(self, method: str, epochs: int, steps: int, done: int, units: Mapping[str, str]) -> None:
        self.epochs, self.steps, self.units, self.numbers = epochs, steps, units, ""
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[at]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            Left(),
            console=err,
        )
        self.live = Live(Group(self.bar, self.below), console=err, refresh_per_second=4)
        self.task = self.bar.add_task(
            method + self.said, total=epochs * steps, completed=done * steps, at=f"epoch {done}/{epochs}"
        )
        self.live.start()

    def step(self, epoch: int, step: int, loss: float) -> None:
        self._end_stage()  # intervals, after which the weights are trained on
        done = (epoch - 1) * self.steps + step - 1  # the end of an epoch may take long, too
        self.bar.update(self.task, completed=done, at=f"epoch {epoch}/{self.epochs}")

    def epoch(self, row: Mapping[str, Any]) -> None:
        self.bar.update(self.task, completed=row["epoch"] * self.steps)
        widths = [f"{name} {number(value, self.units[name])}" for name, value in row["widths"].items()]
        parts = [f"loss {row['loss']:.3f}", *widths]
        if "log_evidence" in row:
            parts.insert(1, f"log evidence {row['log_evidence']:.1f}")
        self.numbers = "  ".join(parts)
        self._write()

    def remaining(self, seconds: float) -> None:
        self.bar.update(self.task, end=self.bar.get_time() + seconds)

    def stage(self, what: str, done: int = 0, total: int = 0) -> None:
        if self.bar.tasks[-1].description != what:
            self._end_stage()
            self.bar.add_task(what, total=None, at="")
            self.ahead([name for name in self.coming if name not in (what, "plain to compare")])
        self.bar.update(self.bar.tasks[-1].id, completed=done, total=total or None)

    def _end_stage(self) -> None:
        for task in self.bar.tasks[1:]:
            self.bar.update(task.id, total=1, completed=1)

    def stop(self) -> None:
        self._end_stage()
        self.coming = []
        self._write()
        self.live.stop()
        if not err.is_terminal:  # where the last frame has no end of line
            err.line()


def live_bar(quiet: bool, compares: bool = False) -> tuple[Progress, ...]:
    """Return the callback that draws a bar; for --quiet one that only prints what must be known."""
    return (Notes() if quiet else LiveBar(compares),)


@contextmanager
def step_bar(quiet: bool, *columns: Any) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar; yield its callback: what is done, how much of it, and the total."""
    shown = TextColumn("{task.description}"), BarColumn(), *columns, TimeRemainingColumn()
    with Bar(*shown, console=err, transient=True, disable=quiet) as bar:
        task = bar.add_task("", total=None)

        def step(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield step
