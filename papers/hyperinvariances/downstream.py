"""Downstream tasks of paper C, and what is kept of adapting an extractor to one. Torch loads inside the functions."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from augury.records.results import Invariance, Width
from papers.hyperinvariances.pretraining import coloured, pretrained, sized, untrained
from papers.learning import machine
from papers.recipes import ADAPT
from papers.results import Cell, Result

if TYPE_CHECKING:
    from torch import Tensor

    from augury.data.dataset import Dataset
    from augury.models.hypernetwork import HyperExtractor
    from augury.records.results import Adaptation

MIDDLE = (0.5, 0.5)
CORNERS = ((1, 1), (1, 0), (0, 1), (0, 0))


def run(cell: Cell, device: str = "cpu") -> Result:
    """Run one cell of Tables 1 and 3: an extractor, a task, a way to choose the descriptor."""
    data = task(cell.data, cell.variant, cell.settings["per_class"], cell.test_images, cell.seed)
    if cell.algorithm == "random":
        extractor, seconds = untrained(cell.settings["pretrain"], data.input_shape, cell.seed), 0.0
    else:
        extractor, card = pretrained(cell.settings["pretrain"], cell.seed)
        seconds = card.seconds
    fixed = {"fixed": [MIDDLE], "mtl": [MIDDLE], "random": [MIDDLE], "corners": CORNERS}
    if cell.algorithm in fixed:
        found = [adapted(extractor, data, device, descriptor=list(i)) for i in fixed[cell.algorithm]]
        names = [",".join(f"{value:g}" for value in a.descriptor.values()) for a in found]
        corners = dict(zip(names, [a.score for a in found], strict=True))
        best = max(found, key=lambda a: a.log_evidence or 0.0)
        return result(cell, best, pretraining=seconds, corners=corners)
    best, rounded = chosen(extractor, data, device, cell.algorithm)
    i = list(rounded.descriptor.values())
    return result(cell, best, pretraining=seconds, binary=rounded.score, binary_i=i)


def adapted(extractor: "HyperExtractor", data: "Dataset", device: str, **settings: Any) -> "Adaptation":
    """Fit a head, and the descriptor if none is given."""
    from augury.methods.hyper.adapt import adapt

    return adapt(extractor, data, device=device, **{**ADAPT, **settings}).adaptation


def chosen(
    extractor: "HyperExtractor", data: "Dataset", device: str, criterion: str
) -> "tuple[Adaptation, Adaptation]":
    """Choose the descriptor by a criterion; also return what the rounded descriptor gives."""
    best = adapted(extractor, data, device, criterion=criterion)
    rounded = [round(v) for v in best.descriptor.values()]
    return best, adapted(extractor, data, device, descriptor=rounded)


@lru_cache(maxsize=2)
def task(name: str, what: str, n: int, test_images: int | None, seed: int) -> "Dataset":
    """Return coloured-rotated digits with few training images."""
    from augury.data.load import load

    data = per_class(load(name, variant="coloured_rotated", task=what, seed=seed), n, seed)
    if test_images is None:
        return data
    return replace(data, x_test=data.x_test[:test_images], y_test=data.y_test[:test_images])


def per_class(data: "Dataset", n: int, seed: int) -> "Dataset":
    """Return a data set with n training examples of every class, drawn at random."""
    import torch

    from augury.core.rng import generator

    order = torch.randperm(len(data.y_train), generator=generator(seed))
    keep = torch.cat([order[data.y_train[order] == c][:n] for c in range(data.n_outputs)])
    return replace(data, x_train=data.x_train[keep], y_train=data.y_train[keep])


def natural(task: Mapping[str, Any], side: int, seed: int) -> "Dataset":
    """Return a task of Table 2 at the extractor's size: recognition, or landmarks on faces."""
    return _natural(task["data"], task["images"], task["test"], bool(task.get("regression")), side, seed)


@lru_cache(maxsize=2)
def _natural(name: str, images: int, test: int, centres: bool, side: int, seed: int) -> "Dataset":
    from augury.data.load import load

    data = load(name, seed=seed)
    data = data.subset(min(images, len(data.x_train)), seed)
    y_train, y_test = data.y_train, data.y_test[:test]
    x_train, x_test = (sized(coloured(x), side) for x in (data.x_train[:], data.x_test[:test]))
    if centres:
        y_train, y_test = _centre(x_train), _centre(x_test)
    elif data.task == "regression":
        scale = side / data.input_shape[-1]  # landmarks are in pixels
        y_train, y_test = y_train * scale, y_test * scale
    regression = centres or data.task == "regression"
    kind = "regression" if regression else "classification"
    names = () if regression else data.class_names
    return replace(data, x_train=x_train, x_test=x_test, y_train=y_train, y_test=y_test, task=kind, class_names=names)


def held_out(cell: Cell) -> "Tensor":
    """Return images of Figure 1 that pre-training has not seen."""
    from augury.data.load import load
    from augury.data.variants import coloured_rotated

    pretrain, n = cell.settings["pretrain"], cell.settings["images"]
    data = load(pretrain["data"], seed=cell.seed)
    if pretrain.get("method") == "multitask":
        return coloured_rotated(data, seed=cell.seed).x_test[:n]
    return sized(coloured(data.x_test[:n]), pretrain["side"])


def _centre(x: "Tensor") -> "Tensor":
    """Return the centre of brightness of images, in pixels: a landmark for data that have none."""
    import torch

    weight = x.mean(1)
    total = weight.sum((1, 2)).clamp(min=1e-6)
    places = torch.arange(x.shape[-1]).to(x)
    return torch.stack([(weight.sum(1) @ places) / total, (weight.sum(2) @ places) / total], 1)


def result(cell: Cell, found: "Adaptation", **extra: Any) -> Result:
    regression = found.task == "regression"
    invariance = Invariance(
        widths={name: Width(value, "") for name, value in found.descriptor.items()},
        method=cell.method,
        model=cell.model,
        data=found.data,
        test_accuracy=None if regression else found.score,
        log_evidence=found.log_evidence,
        seconds=found.seconds,
    )
    kept = {
        "score": found.score,
        "train": found.train_score,
        "train_loss": found.train_loss,
        "bound": found.bound.to_json(),
        "i": list(found.descriptor.values()),
        **extra,
    }
    return Result(cell.key, cell, invariance, 0, found.N, {}, machine(), kept)
