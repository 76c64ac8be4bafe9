"""`augury data list` and `augury data fetch NAME`. Loads no torch."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from augury.cli.console import err, out, print_json
from augury.data.named import data_dirs, listing

app = typer.Typer(help="See which data sets are there, and fetch what can be had.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


@app.command("list")
def list_data(as_json: Json = False) -> None:
    """List the data sets known by name: what they are, where they are, how to get them."""
    lines = listing()
    if as_json:
        print_json({"data_sets": [asdict(line) for line in lines], "looked_in": list(map(str, data_dirs()))})
        return
    table = Table(box=None, pad_edge=False)
    for title in ("name", "what", "train + test", "where it is, or how to get it"):
        table.add_column(title, overflow="fold")
    for line in lines:
        place = Text(line.found or "", "green").append(f" {line.how}" if line.how else "", "yellow")
        table.add_row(Text(line.name, "bold"), line.what, line.shapes, place)
    out.print(table)
    out.print(
        "A folder with one sub-folder of images per class works too, and so does an .npz file.", style="dim"
    )


@app.command("fetch")
def fetch_data(
    name: Annotated[str, typer.Argument(help="Which data set: mnist, fashion_mnist, kmnist10k or cifar10.")],
    url: Annotated[str | None, typer.Option(help="Another base address for the official files.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch it even if it is there.")] = False,
    as_json: Json = False,
) -> None:
    """Obtain a data set, verify it, and put it into the cache."""
    from augury.data.fetch import fetch

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=err, transient=True) as bar:
        row = bar.add_task("", total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(row, description=what, completed=done, total=total or None)

        fetched = fetch(name, progress=show, url=url, force=force)
    if as_json:
        print_json(asdict(fetched))
        return
    for line in fetched.failed:
        err.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
    out.print(
        f"{fetched.name}: {fetched.path} ({fetched.route})", markup=False, highlight=False, soft_wrap=True
    )
