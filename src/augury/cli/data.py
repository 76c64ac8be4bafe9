"""`augury data list` and `augury data fetch NAME`. Loads no torch."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import DownloadColumn
from rich.text import Text

from augury.cli import options as o
from augury.cli.console import note, out, print_json, say, step_bar, table
from augury.data.named import data_dirs, listing

app = typer.Typer(help="List the named data sets, and download what can be downloaded.", no_args_is_help=True)


@app.command("list")
def list_data(json: o.Json = False) -> None:
    """List the data sets known by name: what they are, where they are, how to get them."""
    lines = listing()
    if json:
        print_json({"data_sets": [asdict(line) for line in lines], "looked_in": list(map(str, data_dirs()))})
        return
    rows = []
    for line in lines:
        place = Text(line.found or "", "green").append(f" {line.how}" if line.how else "", "yellow")
        rows.append([Text(line.name, "bold"), line.what, line.shapes, place])
    columns = ("name", "what", "train + test", "where it is, or how to get it")
    out.print(table("", columns, rows, left=4, frame=False))
    out.print("A folder with one sub-folder of images per class works too, and so does an .npz file.", style="dim")


@app.command("fetch")
def fetch_data(
    name: Annotated[str, typer.Argument(help="Which data set: mnist, cifar10, OSULeaf, ... (see augury data list).")],
    url: Annotated[str | None, o.option("--url", "Another base address for the official files.")] = None,
    force: Annotated[bool, o.option("--force", "Fetch it even if it is there.")] = False,
    json: o.Json = False,
) -> None:
    """Download a data set, verify it, and put it into the cache."""
    from augury.data.fetch import fetch

    with step_bar(False, DownloadColumn()) as show:
        fetched = fetch(name, progress=show, url=url, force=force)
    if json:
        print_json(asdict(fetched))
        return
    for line in fetched.failed:
        note(line, style="dim")
    say(f"{fetched.name}: {fetched.path} ({fetched.route})")
