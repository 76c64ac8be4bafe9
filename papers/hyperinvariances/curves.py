"""What Figure 1 measures along a line of descriptors. Loads torch."""

import time
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from augury.core.rng import generator
from augury.data.coloured import coloured_rotated
from augury.data.load import load
from augury.methods.hyper.adapt import adapt
from augury.methods.hyper.groups import parse_groups
from augury.methods.hyper.measured import measure
from augury.records.results import Invariance
from papers.cell import Cell, Result
from papers.hyperinvariances.extractors import coloured, pretrained, sized
from papers.hyperinvariances.run import task
from papers.run import machine

if TYPE_CHECKING:
    from augury.records.saved import Pretraining


def measured(cell: Cell) -> Result:
    """Measure invariance along [i, 1 - i], on images that pre-training has not seen."""
    start = time.perf_counter()
    extractor, card = pretrained(cell.settings["pretrain"], cell.seed)
    x = _images(cell)
    i = torch.linspace(0, 1, cell.settings["points"])
    groups = parse_groups(card.transformations, x.shape[1])
    found = measure(extractor, x, groups, torch.stack([i, 1 - i], 1), generator(cell.seed))
    curves = {"i": _list(i)} | {name: _list(found.cosine[:, k]) for k, name in enumerate(found.groups)}
    return _result(cell, card, {**curves, "random pairs": _list(found.random)}, start)


def _images(cell: Cell) -> Tensor:
    pretrain, n = cell.settings["pretrain"], cell.settings["images"]
    data = load(pretrain["data"], seed=cell.seed)
    if pretrain.get("method") == "multitask":
        return coloured_rotated(data, seed=cell.seed).x_test[:n]
    return sized(coloured(data.x_test[:n]), pretrain["side"])


def downstream(cell: Cell) -> Result:
    """Fit heads along a line of descriptors."""
    start = time.perf_counter()
    extractor, card = pretrained(cell.settings["pretrain"], cell.seed)
    data = task(cell.data, cell.variant, cell.settings["per_class"], 2000, cell.seed)
    curves: dict[str, list[float | None]] = {
        "i": [],
        "train_loss": [],
        "log_evidence": [],
        "test_accuracy": [],
    }
    for i in torch.linspace(0, 1, cell.settings["points"]).tolist():
        descriptor = [1.0, i] if cell.variant == "colour" else [i, 1.0]
        found = adapt(extractor, data, descriptor=descriptor, folds=0).adaptation
        curves["i"].append(i)
        curves["train_loss"].append(found.train_loss)
        curves["log_evidence"].append(found.log_evidence)
        curves["test_accuracy"].append(found.score)
    return _result(cell, card, curves, start)


def _list(values: Tensor) -> list[float | None]:
    return [round(value, 6) for value in values.tolist()]


def _result(cell: Cell, card: "Pretraining", curves: dict[str, Any], start: float) -> Result:
    invariance = Invariance({}, cell.method, cell.model, cell.data, seconds=time.perf_counter() - start)
    return Result(
        cell.key, cell, invariance, 0, card.images, curves, machine(), {"pretraining": card.seconds}
    )
