"""`python -m papers PAPER ITEM`: reproduce a table or a figure of a paper, ours beside theirs."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from augury.cli.console import err, interruptible, out, print_json, say_error
from augury.core.errors import AuguryError
from papers.catalog import PAPERS, SCALES
from papers.executor import EXECUTORS, Failure
from papers.grid import Watch
from papers.reproduce import DOCS, Request, reproduce
from papers.results import FILTERS, Result

HELP = f"""
Reproduce a table or a figure of a paper, ours beside theirs.

Every run is one cell of a grid; its result is kept as soon as it ends.
Started again, the same command runs only what is missing.

{"; ".join(f"{name}: {', '.join(paper.items)}" for name, paper in PAPERS.items())}.

\b
python -m papers lila recovery --scale quick           see that it works, in seconds
python -m papers lila recovery --only method=lila      only some cells; the table shows all that is there
python -m papers lila table1 --scale small --jobs 2    several processes
python -m papers lila table1 --executor ray            several machines: ray start, RAY_ADDRESS=auto
augury reproduce lila table1                           the same in an editable install
augury bench policies                                  the same as: python -m papers policies table
python -m papers scoreboard                            which claims of the papers hold, from the results on disk
python -m papers results --seeds 1                     every missing cell of the papers, and how long that takes
"""
CONTINUE = "The same command continues with the cells that are missing."

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    help=HELP,
    no_args_is_help=True,
    epilog="Exit codes: 0 done; 2 something given does not fit, or a cell failed; 129, 130, 143 stopped by a signal.",
)
def _command(
    paper: Annotated[str, typer.Argument(help=f"One of {', '.join(PAPERS)}.")],
    item: Annotated[str, typer.Argument(help="A table or a figure of it; none for scoreboard and results.")] = "",
    scale: Annotated[str, typer.Option("--scale", help=f"{', '.join(SCALES)}: seconds, an hour, a GPU.")] = "small",
    seeds: Annotated[int, typer.Option("--seeds", help="How many seeds.")] = 3,
    first: Annotated[int, typer.Option("--first-seed", help="The first of them.")] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help=f"Run some cells only: method=lila; also {', '.join(FILTERS)}; repeatable."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; each gets its share of the cores.")] = 1,
    executor: Annotated[
        str, typer.Option("--executor", help=f"{', '.join(EXECUTORS)}: this machine, or the cluster of RAY_ADDRESS.")
    ] = "local",
    output: Annotated[
        Path | None, typer.Option("--out", help="Folder for results. Default: docs/results; runs/reproduce when quick.")
    ] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, mps, as torch names them.")] = "cpu",
    write_only: Annotated[
        bool, typer.Option("--write-only", help="Run nothing; write table and figures of what is there.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    if paper == "scoreboard":
        from papers.scoreboard import write

        out.print(Markdown(write(output or DOCS)))
        return
    if paper == "results":
        _everything(seeds, jobs, output or DOCS, None if quiet else show)
        return
    request = Request(paper, item, scale, seeds, tuple(only or ()), jobs, output, device, first, write_only, executor)
    with interruptible(CONTINUE):
        found = reproduce(request, None if quiet else show)
    if as_json:
        failed = [{"cell": failure.cell.key, "why": failure.message} for failure in found.failures]
        paths = {"table": str(found.table), "results": str(found.lines), "figures": [*map(str, found.figures)]}
        print_json({**paths, "cells": found.cells, "ran": found.ran, "failed": failed})
    else:
        out.print(Markdown(found.text))
        out.print(f"Written to {found.table}", highlight=False, soft_wrap=True)
    if found.failures:
        raise typer.Exit(2)


def _everything(seeds: int, jobs: int, folder: Path, watch: Watch | None) -> None:
    """Run what is missing of every item, after saying how long it will take."""
    from papers import budget, scoreboard

    found = budget.write(seeds, folder)
    out.print(Markdown(budget.text(found)))
    with interruptible(CONTINUE):
        for gap in found:
            reproduce(Request(gap.paper, gap.item, seeds=seeds, jobs=jobs, out=folder), watch)
    budget.write(seeds, folder)
    out.print(Markdown(scoreboard.write(folder)))


def show(outcome: Result | Failure, done: int, total: int) -> None:
    """Print in a line what came of a cell."""
    if isinstance(outcome, Failure):
        err.print(f"[{done}/{total}] {outcome.cell.key} failed: {outcome.message}", style="red", markup=False)
        return
    i = outcome.invariance
    accuracy = "" if i.test_accuracy is None else f", {100 * i.test_accuracy:.1f} %"
    text = f"[{done}/{total}] {outcome.key}: {i.seconds:.0f} s{accuracy}"
    err.print(text, markup=False, highlight=False, soft_wrap=True)


def main(arguments: list[str] | None = None, name: str = "python -m papers") -> None:
    """Run the command line; an `AuguryError` becomes a message and exit code 2."""
    try:
        app(arguments, prog_name=name)
    except AuguryError as error:
        say_error(error)
        sys.exit(2)


if __name__ == "__main__":
    main()
