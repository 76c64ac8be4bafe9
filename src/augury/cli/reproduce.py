"""`augury reproduce`: a table or a figure of a paper, ours beside theirs."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markdown import Markdown

from augury.cli.console import err, out, print_json
from papers.catalog import PAPERS
from papers.cell import Result
from papers.grid import Failure
from papers.item import SCALES
from papers.reproduce import Reproduced, Request
from papers.reproduce import reproduce as carry_out

HELP = """
Reproduce a table or a figure of a paper, ours beside theirs.

Every run is one cell of a grid; its result is kept as soon as it ends.
Started again, the same command runs only what is missing.

\b
augury reproduce lila recovery --scale quick              see that it works, in seconds
augury reproduce lila recovery --only method=lila         only some cells; the table shows all that is there
augury reproduce lila table1 --scale small --jobs 2       several processes
"""

_ITEMS = "; ".join(f"{name}: {', '.join(paper.items)}" for name, paper in PAPERS.items())


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"Which paper: {', '.join(PAPERS)}.")],
    item: Annotated[str, typer.Argument(help=f"Which table or figure. {_ITEMS}.")],
    scale: Annotated[
        str, typer.Option("--scale", help=f"{', '.join(SCALES)}: seconds, an hour, a GPU.")
    ] = "small",
    seeds: Annotated[int, typer.Option("--seeds", help="How many seeds.")] = 3,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="Run some cells only: method=lila, variant=rotated,scaled; may be repeated."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Processes; each gets its share of the cores.")
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for results. Default: docs/results; runs/reproduce when quick."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, mps, as torch names them.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing while it runs.")] = False,
) -> None:
    """Check what was asked, then do it; see `HELP`."""
    request = Request(paper, item, scale, seeds, tuple(only or ()), jobs, output, device)
    try:
        found = carry_out(request, None if quiet else tell)
    except KeyboardInterrupt:
        err.print("Interrupted. The same command goes on with the cells that are missing.", style="yellow")
        raise typer.Exit(130) from None
    if as_json:
        print_json(as_object(found))
    else:
        out.print(Markdown(found.text))
        out.print(f"Written to {found.table}", highlight=False, soft_wrap=True)
    if found.failures:
        raise typer.Exit(2)


def tell(outcome: Result | Failure, done: int, total: int) -> None:
    """Say in a line what came of a cell."""
    if isinstance(outcome, Failure):
        err.print(f"[{done}/{total}] {outcome.cell.key} failed: {outcome.message}", style="red", markup=False)
        return
    i = outcome.invariance
    accuracy = "" if i.test_accuracy is None else f", {100 * i.test_accuracy:.1f} %"
    text = f"[{done}/{total}] {outcome.key}: {i.seconds:.0f} s{accuracy}"
    err.print(text, markup=False, highlight=False, soft_wrap=True)


def as_object(found: Reproduced) -> dict[str, Any]:
    """Return what --json prints."""
    return {
        "table": str(found.table),
        "results": str(found.lines),
        "figures": list(map(str, found.figures)),
        "cells": found.cells,
        "ran": found.ran,
        "failed": [{"cell": failure.cell.key, "why": failure.message} for failure in found.failures],
    }
