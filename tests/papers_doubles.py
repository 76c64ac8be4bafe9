"""Cells, runs and items for the tests of papers/ that train nothing, and the command line of papers/ at scale quick."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from augury.core.errors import RunError
from augury.records.results import Invariance, Width
from papers.__main__ import main
from papers.catalog import PAPERS, Item, item
from papers.results import ORIGINAL, Cell, Result

MACHINE = {"cores": 2, "memory_gb": 4, "threads": 1, "torch": "2"}


def cell(method="lila", seed=0, **settings) -> Cell:
    return Cell("toy", "rotated", "toy_mlp", method, seed, settings)


def result(cell, accuracy=0.5, evidence=None, **extra) -> Result:
    widths = {"rotation": Width(170.0 + cell.seed, "deg", planted=180.0)}
    invariance = Invariance(widths, cell.method, cell.model, cell.data, accuracy, log_evidence=evidence, seconds=2.0)
    return Result(cell.key, cell, invariance, 1, 10, {"loss": [1.0, None]}, MACHINE, extra)


def run(cell, device) -> Result:
    if cell.settings.get("fails"):
        raise RunError("the loss became nan")
    if cell.settings.get("broken"):
        raise ZeroDivisionError("a fault")
    return result(cell, pid=os.getpid(), device=device)


def run_with_threads(cell, device) -> Result:
    import torch

    return result(cell, pid=os.getpid(), threads=torch.get_num_threads())


def run_and_lose(cell, device) -> Result:
    """Lose the process as often as the cell says; each attempt leaves a file."""
    place = Path(cell.settings["place"])
    if first := cell.settings.get("after"):
        while not (place / first).exists():
            time.sleep(0.01)
        time.sleep(1.0)
    lost = len(list(place.glob(f"{cell.seed}_*")))
    (place / f"{cell.seed}_{lost}").touch()
    if lost < cell.settings.get("losses", 0):
        os.kill(os.getpid(), signal.SIGKILL)
    return result(cell, pid=os.getpid(), lost=lost)


def grid(scale, seeds) -> list[Cell]:
    return [cell(method, seed, scale=scale) for seed in seeds for method in ("lila", "plain")]


def write(results) -> str:
    return "".join(f"row {r.cell.method} {r.cell.seed}\n" for r in results)


def an_item(run=run) -> Item:
    return Item("A table.", grid, write, lambda results: {"a": Figure()}, run)


def items_of(paper) -> dict[str, Item]:
    return {name: item(paper, name) for name in PAPERS[paper].items}


def check_cells(cells, check_settings, known_variants=True) -> None:
    """Every cell names data that exist, survives JSON, and has settings that its method takes."""
    from augury.data.named import NAMED
    from augury.data.variants import variant_names

    assert cells and len({c.key for c in cells}) == len(cells) and {c.seed for c in cells} == {0, 1}
    for c in cells:
        assert c.data in NAMED and Cell.from_json(json.loads(json.dumps(c.to_json()))).key == c.key
        if c.variant != ORIGINAL and known_variants:
            variant_names(c.variant)
        check_settings(c)


def quick(capsys, folder, paper, name, shows=(), figures=False) -> dict:
    """Reproduce an item at scale quick: what it says of itself; its page must hold the parts that it shows."""
    with pytest.raises(SystemExit) as end:
        main([paper, name, "--scale", "quick", "--seeds", "1", "--out", str(folder), "--json"])
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert not end.value.code and found["failed"] == [] and bool(found["figures"]) == figures, captured.err
    assert found["ran"] == len(captured.err.splitlines())
    text = (folder / f"{paper}_{name}.md").read_text()
    assert [part for part in shows if part not in text] == []
    return found
