"""`augury report`: runs, audits and adaptations as one HTML file; loads no torch."""

import webbrowser
from pathlib import Path
from typing import Annotated

from augury.cli import options as o
from augury.cli.console import note, say

HELP = """
Write the report of a run, or the comparison of several, as one HTML file.

It needs no network and opens in any browser. learn, audit and adapt write
it by themselves; this writes it again, also for a run that still trains.

\b
augury report runs/a                           runs/a/report.html
augury report runs/a --open                    and show it
augury report runs/a runs/b --out both.html    side by side
"""


def report(
    runs: Annotated[
        list[Path],
        o.argument("RUN...", "Folders that augury learn, audit or adapt wrote; several are compared on one page."),
    ],
    out_file: Annotated[
        Path | None,
        o.option("--out -o", "The file. Default: report.html in the run's folder; comparison.html here for several."),
    ] = None,
    open_it: Annotated[bool, o.option("--open", "Show it in the browser.")] = False,
) -> None:
    """Write the page."""
    from augury.report.page import write_report

    file = write_report(*runs, out=out_file)
    say(str(file))
    if open_it and not webbrowser.open(file.resolve().as_uri()):
        note("No browser could be started; open the file by hand.")
