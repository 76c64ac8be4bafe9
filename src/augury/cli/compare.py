"""`augury compare`: runs side by side in the terminal, as JSON, or as a page; loads no torch."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from augury.cli.console import err, out, print_json
from augury.core.errors import InputError

Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN RUN...",
        help="Folders that augury learn, amortize, adapt or audit left.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Write the comparison as an HTML page, too.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")]

HELP = """
Compare runs: what each learned, how well, and whether they can be compared at all.

\b
augury compare runs/a runs/b
augury compare runs/* --json > runs.json
augury compare runs/a runs/b --out both.html
"""


def compare(runs: Runs, out_file: Out = None, json: Json = False) -> None:
    """Read the runs and show them; see `HELP`."""
    from augury.report.compared import as_object, remarks, tables
    from augury.report.page import check_out, write_report
    from augury.training.run_folder import read_run

    if len(runs) < 2:
        raise InputError(f"compare takes at least two runs; got {len(runs)}. For one there is augury report.")
    if out_file is not None:
        check_out(out_file)
    found = [read_run(path) for path in runs]
    if json:
        print_json(as_object(found))
    else:
        for title, head, body in tables(found):
            out.print(_table(title, head, body))
        for remark in remarks(found):
            out.print(remark, style="yellow", highlight=False)
    if out_file is not None:
        write_report(*runs, out=out_file)
        err.print(f"The page is {out_file}", highlight=False, soft_wrap=True)


def _table(title: str, head: list[str], body: list[list[str]]) -> Table:
    table = Table(title=title, title_justify="left")
    for k, name in enumerate(head):
        table.add_column(Text(name), justify="left" if k == 0 else "right", overflow="fold")
    for row in body:
        table.add_row(*map(Text, row))  # names in brackets are names, not colours
    return table
