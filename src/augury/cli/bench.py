"""`augury bench`: who should choose the augmentation, on real data at equal budgets."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markdown import Markdown

from augury.cli.console import err, out, print_json
from augury.cli.reproduce import tell
from papers.policies.compare import RUNS, Compared, Request, compare
from papers.policies.policies import POLICIES, SCALES

HELP = f"""
Compare ways to choose an augmentation policy on real data, at equal budgets.

{"; ".join(f"{name}: {policy.what}" for name, policy in POLICIES.items())}.
Every result is kept as soon as it is there; started again, the same
command runs only what is missing.

\b
augury bench policies --scale quick               see that it works, in seconds
augury bench policies                             rotated and original Fashion-MNIST, CIFAR-10
augury bench policies --only method=lila,plain    some policies only; the table shows all that is there
"""


def bench(
    what: Annotated[str, typer.Argument(help=f"Which comparison: {', '.join(RUNS)}.")] = "policies",
    scale: Annotated[
        str, typer.Option("--scale", help=f"{', '.join(SCALES)}: seconds, or half an hour of one core.")
    ] = "small",
    seeds: Annotated[int, typer.Option("--seeds", help="How many seeds.")] = 1,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Run some cells only: method=lila, variant=rotated; may be repeated."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Processes; each gets its share of the cores.")
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for results. Default: docs/results; runs/bench when quick."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, mps, as torch names them.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing while it runs.")] = False,
) -> None:
    """Check what was asked, then do it; see `HELP`."""
    request = Request(what, scale, seeds, tuple(only or ()), jobs, output, device)
    try:
        found = compare(request, None if quiet else tell)
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


def as_object(found: Compared) -> dict[str, Any]:
    """Return what --json prints."""
    return {
        "table": str(found.table),
        "results": str(found.lines),
        "cells": found.cells,
        "ran": found.ran,
        "failed": [{"cell": failure.cell.key, "why": failure.message} for failure in found.failures],
    }
