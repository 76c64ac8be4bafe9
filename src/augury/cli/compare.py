"""`augury compare`: runs side by side in the terminal, as JSON, or as a page; loads no torch."""

from pathlib import Path
from typing import Annotated

from augury.cli import options as o
from augury.cli.console import note, out, print_json, table
from augury.core.errors import InputError

HELP = """
Compare runs: what each learned, how well, and whether they are comparable.

\b
augury compare runs/a runs/b
augury compare runs/* --json > runs.json
augury compare runs/a runs/b --out both.html
"""


def compare(
    runs: Annotated[list[Path], o.argument("RUN RUN...", "Folders that augury learn, audit or adapt wrote.")],
    out_file: Annotated[Path | None, o.option("--out -o", "Also write the comparison as an HTML page.")] = None,
    json: o.Json = False,
) -> None:
    """Read the runs and show them."""
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
            out.print(table(title, head, body))
        for remark in remarks(found):
            out.print(remark, style="yellow", highlight=False)
    if out_file is not None:
        write_report(*runs, out=out_file)
        note(f"The page is {out_file}", style="default")
