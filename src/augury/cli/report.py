"""`augury report`: runs, audits and adaptations as one HTML file; loads no torch."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from augury.cli.console import err, out

Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...",
        help="Folders that augury learn, amortize, adapt or audit left; several are compared on one page.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="The file. Default: report.html in the run's folder; comparison.html here for several.",
        show_default=False,
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Show it in the browser.", show_default=False)]

HELP = """
Write the report of a run, or the comparison of several, as one HTML file.

It needs no network and opens in any browser. learn, audit and adapt write
it by themselves; this writes it again, also for a run that still trains.

\b
augury report runs/a                           runs/a/report.html
augury report runs/a --open                    and show it
augury report runs/a runs/b --out both.html    side by side
"""


def report(runs: Runs, out_file: Out = None, open_it: Open = False) -> None:
    """Write the page; see `HELP`."""
    from augury.report.page import write_report

    file = write_report(*runs, out=out_file)
    out.print(str(file), highlight=False, soft_wrap=True)
    if open_it and not webbrowser.open(file.resolve().as_uri()):
        err.print("No browser could be started; open the file by hand.", style="yellow")
