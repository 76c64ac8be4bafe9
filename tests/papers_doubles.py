"""Cells and runs for the tests of the reproduction frame that train nothing."""

import os
from collections.abc import Sequence

from augury.core.errors import RunError
from augury.records.results import Invariance, Width
from papers.cell import Cell, Result
from papers.item import Item

MACHINE = {"cores": 2, "memory_gb": 4, "threads": 1, "torch": "2"}


def cell(method: str = "lila", seed: int = 0, **settings) -> Cell:
    return Cell("toy", "rotated", "toy_mlp", method, seed, settings)


def result(cell: Cell, accuracy: float = 0.5, evidence: float | None = None, **extra) -> Result:
    widths = {"rotation": Width(170.0 + cell.seed, "deg", planted=180.0)}
    invariance = Invariance(
        widths, cell.method, cell.model, cell.data, accuracy, log_evidence=evidence, seconds=2.0
    )
    return Result(cell.key, cell, invariance, 1, 10, {"loss": [1.0, None]}, MACHINE, extra)


def run(cell: Cell, device: str) -> Result:
    if cell.settings.get("fails"):
        raise RunError("the loss became nan")
    if cell.settings.get("broken"):
        raise ZeroDivisionError("a fault")
    return result(cell, pid=os.getpid(), device=device)


def run_with_threads(cell: Cell, device: str) -> Result:
    import torch

    return result(cell, pid=os.getpid(), threads=torch.get_num_threads())


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    return [cell(method, seed, scale=scale) for seed in seeds for method in ("lila", "plain")]


def write(results: Sequence[Result]) -> str:
    return "".join(f"row {r.cell.method} {r.cell.seed}\n" for r in results)


def item(run=run) -> Item:
    return Item("A table.", grid, write, lambda results: {"a.svg": b"<svg/>"}, run)
