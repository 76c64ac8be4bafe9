"""Run one cell: read its data, learn, keep what a table or a figure needs. Torch loads inside the functions."""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from augury.data.named import find
from papers.recipes import complete
from papers.results import ORIGINAL, Cell, Result

if TYPE_CHECKING:
    from augury.data.dataset import Dataset
    from augury.methods.learn import Learned


GENERATORS = {"image": ("affine",), "coordinates": ("rotation",)}
"""What may act where a cell does not say it, by the kind of its data."""


def run_cell(cell: Cell, device: str = "cpu") -> Result:
    return result_of(cell, *learned(cell, device))


def learned(cell: Cell, device: str = "cpu") -> "tuple[Dataset, Learned]":
    from augury.methods.learn import learn

    data = data_of(cell)
    settings = {"generators": GENERATORS[data.kind], **complete(cell), "device": device, "seed": cell.seed}
    return data, learn(data, model=cell.model, method=cell.algorithm, **settings)


def result_of(cell: Cell, data: "Dataset", learned: "Learned", **extra: Any) -> Result:
    kept = curves(learned.metrics)
    return Result(cell.key, cell, learned.invariance, learned.epoch, len(data.x_train), kept, machine(), extra)


def data_of(cell: Cell) -> "Dataset":
    return read_data(cell.data, cell.variant, cell.subset, cell.test_images, cell.seed)


@lru_cache(maxsize=2)
def read_data(name: str, variant: str, subset: int | None, test_images: int | None, seed: int) -> "Dataset":
    """Return data with a planted truth; neighbours in a grid share them."""
    from dataclasses import replace

    import torch

    from augury.core.rng import generator
    from augury.data.load import load

    data = load(name, variant=None if variant == ORIGINAL else variant, subset=subset, seed=seed)
    if test_images is None or test_images >= len(data.x_test):
        return data
    keep = torch.randperm(len(data.x_test), generator=generator(0))[:test_images]
    return replace(data, x_test=data.x_test[keep], y_test=data.y_test[keep])


def digits(scale: str) -> str:
    """Return which MNIST to use: the complete one where it is there, else the 5,000 images that ship."""
    return "mnist" if scale == "paper" or (scale == "small" and find("mnist")) else "mnist5k"


def curves(metrics: Sequence[dict[str, Any]]) -> dict[str, list[float | None]]:
    """Turn lines of metrics into columns of six significant digits: loss, log evidence, each width."""
    rows = [{"loss": row["loss"], "log_evidence": row.get("log_evidence"), **row["widths"]} for row in metrics]
    names = rows[0] if rows else {}
    return {name: [None if row[name] is None else float(f"{row[name]:.6g}") for row in rows] for name in names}


def machine() -> dict[str, Any]:
    """Return the size of this machine and what it runs."""
    import torch

    from augury import __version__

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    size = {"cores": os.cpu_count(), "memory_gb": round(memory / 2**30), "threads": torch.get_num_threads()}
    return {**size, "torch": torch.__version__, "augury": __version__}
