"""Run one cell of the comparison. Torch is loaded only here."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from augury.bench.policies import VALIDATION, candidates
from augury.papers.cell import Cell, Result
from augury.papers.run import read_data, result_of

if TYPE_CHECKING:
    from augury.data.dataset import Dataset
    from augury.methods.learn import Learned


def run_policy(cell: Cell, device: str = "cpu") -> Result:
    """Run one cell from start to end: one training, or all those of a search."""
    data = read_data(cell.data, cell.variant, cell.subset, cell.test_images, cell.seed)
    started = time.process_time()
    learned, search = (
        _search(cell, data, device) if cell.method == "augmented/grid" else (None, {"trainings": 1})
    )
    learned = learned or _learn(cell, data, device)
    return result_of(cell, data, learned, cpu_seconds=time.process_time() - started, **search)


def _learn(cell: Cell, data: "Dataset", device: str, **changed: Any) -> "Learned":
    from augury.bench.trivial import trivial
    from augury.methods.learn import learn

    transform = trivial(data.input_shape) if cell.method == "augmented/trivial" else None
    settings = {"device": device, **cell.settings, **changed, "seed": cell.seed}
    if "generators" in settings:
        settings["generators"] = tuple(settings["generators"])  # JSON knows lists only
    method = settings.pop("method", cell.algorithm)
    return learn(data, model=cell.model, method=method, transform=transform, **settings)


def _search(cell: Cell, data: "Dataset", device: str) -> "tuple[Learned, dict[str, Any]]":
    """Train every candidate on a part of the images, choose by the rest, train the chosen one on all of them."""
    part = _validation_split(data, cell.seed)
    tried: list[dict[str, Any]] = []
    for widths in candidates():
        accuracy = _candidate(cell, part, widths, device).invariance.test_accuracy
        tried.append({"widths": widths, "accuracy": accuracy})
    best = max(tried, key=lambda entry: entry["accuracy"])  # of equals the first, which moves least
    final = _candidate(cell, data, best["widths"], device)
    return final, {"trainings": len(tried) + 1, "chosen": best["widths"], "tried": tried}


def _candidate(cell: Cell, data: "Dataset", widths: dict[str, float], device: str) -> "Learned":
    if not widths:
        return _learn(cell, data, device, method="plain", evidence="none", samples=1, samples_eval=1)
    return _learn(cell, data, device, generators=("rotation", "translation"), widths=widths)


def _validation_split(data: "Dataset", seed: int) -> "Dataset":
    from augury.data.split import split

    train, held_out = split(data.y_train.numpy(), test_fraction=VALIDATION, seed=seed)
    x, y = data.x_train, data.y_train
    return replace(data, x_train=x[train], y_train=y[train], x_test=x[held_out], y_test=y[held_out])
