"""Downstream tasks of Table 2 at the extractor's size: recognition, and landmarks on faces. Loads torch."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from papers.hyperinvariances.extractors import coloured, sized

if TYPE_CHECKING:
    from torch import Tensor

    from augury.data.dataset import Dataset


def natural(task: Mapping[str, Any], side: int, seed: int) -> "Dataset":
    """Return a downstream task."""
    return _natural(task["data"], task["images"], task["test"], bool(task.get("regression")), side, seed)


@lru_cache(maxsize=2)
def _natural(name: str, images: int, test: int, centres: bool, side: int, seed: int) -> "Dataset":
    from dataclasses import replace

    from augury.data.load import load

    data = load(name, seed=seed)
    data = data.subset(min(images, len(data.x_train)), seed)
    y_train, y_test = data.y_train, data.y_test[:test]
    x_train, x_test = (sized(coloured(x), side) for x in (data.x_train, data.x_test[:test]))
    if centres:
        y_train, y_test = _centre(x_train), _centre(x_test)
    elif data.task == "regression":
        scale = side / data.input_shape[-1]  # landmarks are in pixels
        y_train, y_test = y_train * scale, y_test * scale
    regression = centres or data.task == "regression"
    return replace(
        data,
        x_train=x_train,
        x_test=x_test,
        y_train=y_train,
        y_test=y_test,
        task="regression" if regression else "classification",
        class_names=() if regression else data.class_names,
    )


def _centre(x: "Tensor") -> "Tensor":
    """Return the centre of brightness of images, in pixels: a landmark for data that have none."""
    import torch

    weight = x.mean(1)
    total = weight.sum((1, 2)).clamp(min=1e-6)
    places = torch.arange(x.shape[-1]).to(x)
    return torch.stack([(weight.sum(1) @ places) / total, (weight.sum(2) @ places) / total], 1)
