"""Run one cell of Tables 1 and 3: an extractor, a downstream task, a way to choose the descriptor. Loads torch."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from augury.records.results import Invariance, Width
from papers.cell import Cell, Result
from papers.hyperinvariances.extractors import per_class, pretrained, untrained
from papers.run import machine

if TYPE_CHECKING:
    from augury.data.dataset import Dataset
    from augury.models.hypernetwork import HyperExtractor
    from augury.records.results import Adaptation

MIDDLE = (0.5, 0.5)
CORNERS = ((1, 1), (1, 0), (0, 1), (0, 0))


def run(cell: Cell, device: str = "cpu") -> Result:
    """Adapt, and score on the test set."""
    data = task(cell.data, cell.variant, cell.settings["per_class"], cell.test_images, cell.seed)
    extractor, seconds = _extractor(cell, data)
    fixed = {"fixed": [MIDDLE], "mtl": [MIDDLE], "random": [MIDDLE], "corners": CORNERS}
    if cell.algorithm in fixed:
        found = [_fixed(extractor, data, i, device) for i in fixed[cell.algorithm]]
        extra: dict[str, Any] = {"corners": {_digits(a.descriptor): a.score for a in found}}
        best = max(found, key=lambda a: a.log_evidence or 0.0)
    else:
        best = _chosen(extractor, data, cell.algorithm, device)
        rounded = _fixed(extractor, data, [round(v) for v in best.descriptor.values()], device)
        extra = {"binary": rounded.score, "binary_i": list(rounded.descriptor.values())}
    return result(cell, best, pretraining=seconds, **extra)


def _extractor(cell: Cell, data: "Dataset") -> "tuple[HyperExtractor, float]":
    if cell.algorithm == "random":
        return untrained(cell.settings["pretrain"], data.input_shape, cell.seed), 0.0
    extractor, card = pretrained(cell.settings["pretrain"], cell.seed)
    return extractor, card.seconds


def _fixed(
    extractor: "HyperExtractor", data: "Dataset", i: Sequence[float | int], device: str
) -> "Adaptation":
    from augury.methods.hyper.adapt import adapt

    return adapt(extractor, data, descriptor=list(i), folds=0, device=device).adaptation


def _chosen(extractor: "HyperExtractor", data: "Dataset", criterion: str, device: str) -> "Adaptation":
    from augury.methods.hyper.adapt import adapt

    return adapt(extractor, data, criterion=criterion, folds=0, device=device).adaptation


def _digits(descriptor: Mapping[str, float]) -> str:
    return ",".join(f"{value:g}" for value in descriptor.values())


@lru_cache(maxsize=2)
def task(name: str, what: str, n: int, test_images: int | None, seed: int) -> "Dataset":
    """Return coloured-rotated digits with few training images."""
    from dataclasses import replace

    from augury.data.load import load

    data = per_class(load(name, variant="coloured_rotated", task=what, seed=seed), n, seed)
    if test_images is None:
        return data
    return replace(data, x_test=data.x_test[:test_images], y_test=data.y_test[:test_images])


def result(cell: Cell, found: "Adaptation", **extra: Any) -> Result:
    """Return what is kept of an adaptation."""
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
