"""Run one cell: read its data, learn, keep what a table or a figure needs. Torch is loaded only here."""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from papers.cell import ORIGINAL, Cell, Result

if TYPE_CHECKING:
    from augury.data.dataset import Dataset
    from augury.methods.learn import Learned

DIGITS = 6
"""Significant digits of the curves."""


def run_cell(cell: Cell, device: str = "cpu") -> Result:
    """Run one cell from start to end."""
    return result_of(cell, *learned(cell, device))


def learned(cell: Cell, device: str = "cpu") -> "tuple[Dataset, Learned]":
    """Read the data and learn."""
    from augury.methods.learn import learn

    data = read_data(cell.data, cell.variant, cell.subset, cell.test_images, cell.seed)
    settings = {"device": device, **cell.settings, "seed": cell.seed}
    return data, learn(data, model=cell.model, method=cell.algorithm, **settings)


def result_of(cell: Cell, data: "Dataset", learned: "Learned", **extra: Any) -> Result:
    """Return what is kept of a run."""
    return Result(
        key=cell.key,
        cell=cell,
        invariance=learned.invariance,
        epoch=learned.epoch,
        N=len(data.x_train),
        curves=curves(learned.metrics),
        machine=machine(),
        extra=extra,
    )


@lru_cache(maxsize=2)
def read_data(name: str, variant: str, subset: int | None, test_images: int | None, seed: int) -> "Dataset":
    """Return the data of a cell; neighbours in a grid share them."""
    from dataclasses import replace

    import torch

    from augury.core.rng import generator
    from augury.data.load import load

    planted = None if variant == ORIGINAL else variant
    data = load(name, variant=planted, subset=subset, seed=seed)
    if test_images is None or test_images >= len(data.x_test):
        return data
    keep = torch.randperm(len(data.x_test), generator=generator(0))[:test_images]
    return replace(data, x_test=data.x_test[keep], y_test=data.y_test[keep])


def curves(metrics: Sequence[dict[str, Any]]) -> dict[str, list[float | None]]:
    """Turn lines of metrics into columns: loss, log evidence, each width."""
    rows = [
        {"loss": row["loss"], "log_evidence": row.get("log_evidence"), **row["widths"]} for row in metrics
    ]
    names = rows[0] if rows else {}
    return {name: [_short(row[name]) for row in rows] for name in names}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def machine() -> dict[str, Any]:
    """Return the size of this machine and what it runs."""
    import torch

    from augury import __version__

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "augury": __version__,
    }
