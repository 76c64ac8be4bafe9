"""The policies that are compared, on which data, with which settings, and how one is run. Torch loads inside.

Every training of a row has the same network, images, epochs, batches, optimiser and views per input; every row is
evaluated with as many views. What differs is who chooses the policy, and how many trainings that takes. The fixed
policy, the ranges of the random one and the grid were written down before any result was seen.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from papers.learning import data_of, result_of
from papers.results import ORIGINAL, Cell, Result

if TYPE_CHECKING:
    from augury.data.dataset import Dataset
    from augury.methods.learn import Learned

SHIFT = 4.0
"""Pixels of the customary padded crop."""

FIXED = {"flip_x": 50.0, "translate_x": SHIFT, "translate_y": SHIFT}
"""What most training scripts do: a mirror for half of the images, a crop after padding by four pixels."""

ROTATIONS, SHIFTS = (0.0, 30.0, 90.0, 180.0), (0.0, SHIFT)
VALIDATION = 0.2
"""The grid that a careful person would search, and the share of the training images that decides."""

_NO_EVIDENCE = {"evidence": "none", "samples": 1, "samples_eval": 1}


@dataclass(frozen=True)
class Policy:
    """One row of the table: its method as in `Cell.method`, what it is, and settings of its own."""

    method: str
    what: str
    settings: Mapping[str, Any]


POLICIES = {
    "none": Policy("plain", "no augmentation", _NO_EVIDENCE),
    "none, prior learned": Policy(
        "plain/prior", "no augmentation, LILA's prior", {"samples": 1, "samples_eval": 1}
    ),
    "fixed": Policy(
        "augmented/fixed",
        "mirror and padded crop of 4 pixels",
        {"generators": ["flip_x", "translation"], "widths": FIXED},
    ),
    "random": Policy("augmented/trivial", "one random operation per view (TrivialAugment-style)", {}),
    "grid": Policy("augmented/grid", "grid search over rotation and translation on a validation split", {}),
    "augerino": Policy("augerino", "widths by the training loss with a reward", {}),
    "lila": Policy("lila", "widths by the evidence", {}),
    "lila, mirror too": Policy(
        "lila/mirror",
        "widths and the share of mirrored views by the evidence",
        {"generators": ["affine", "flip_x"]},
    ),
}
"""Every row, by its name."""


@dataclass(frozen=True)
class Scale:
    """How large a comparison is; a row is data, variant and network; all share the settings."""

    rows: tuple[tuple[str, str, str], ...]
    images: int
    test_images: int
    settings: Mapping[str, Any]


QUICK = {"epochs": 2, "samples": 2, "samples_eval": 2, "batch": 20, "burn_in": 0}
QUICK |= {"evidence_images": 20, "eta_images": 10, "eta_steps": 1}

SCALES = {
    "quick": Scale((("mnist5k", "rotated", "mlp5"),), 40, 40, QUICK),
    "small": Scale(
        (
            ("fashion_mnist", "rotated", "cnn"),
            ("fashion_mnist", ORIGINAL, "cnn"),
            ("cifar10_12k", ORIGINAL, "cnn"),
        ),
        1000,
        2000,
        {"epochs": 25, "samples": 4, "samples_eval": 20, "batch": 50},
    ),
}
"""Seconds, to see that it works; and a comparison worth reading, for one core and less than an hour."""

EVIDENCE_ONLY = ("burn_in", "evidence_images", "eta_images", "eta_steps")


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    size = SCALES[scale]
    images = size.images, size.test_images
    return [
        Cell(data, variant, model, policy.method, seed, settings(scale, policy), *images)
        for seed in seeds
        for data, variant, model in size.rows
        for policy in POLICIES.values()
    ]


def settings(scale: str, policy: Policy) -> dict[str, Any]:
    own = {**SCALES[scale].settings, **policy.settings}
    bayesian = policy.method in ("lila", "lila/mirror", "plain/prior")
    return {name: value for name, value in own.items() if bayesian or name not in EVIDENCE_ONLY}


def candidates() -> list[dict[str, float]]:
    """Return the widths that the grid search tries, none at all first."""
    return [
        {name: value for name, value in (("rotation", r), ("translate_x", t), ("translate_y", t)) if value}
        for r in ROTATIONS
        for t in SHIFTS
    ]


def run(cell: Cell, device: str = "cpu") -> Result:
    """Run one cell from start to end: one training, or all those of a search."""
    data = data_of(cell)
    started = time.process_time()
    if cell.method == "augmented/grid":
        learned, search = _search(cell, data, device)
    else:
        learned, search = _learn(cell, data, device), {"trainings": 1}
    return result_of(cell, data, learned, cpu_seconds=time.process_time() - started, **search)


def _learn(cell: Cell, data: "Dataset", device: str, **changed: Any) -> "Learned":
    from augury.methods.learn import learn
    from papers.policies.trivial import trivial

    transform = trivial(data.input_shape) if cell.method == "augmented/trivial" else None
    settings = {"device": device, **cell.settings, **changed, "seed": cell.seed}
    if "generators" in settings:
        settings["generators"] = tuple(settings["generators"])  # JSON knows lists only
    method = settings.pop("method", cell.algorithm)
    return learn(data, model=cell.model, method=method, transform=transform, **settings)


def _search(cell: Cell, data: "Dataset", device: str) -> "tuple[Learned, dict[str, Any]]":
    """Train every candidate on a part of the images, choose by the rest, train the chosen one on all of them."""
    part = validation_split(data, cell.seed)
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


def validation_split(data: "Dataset", seed: int) -> "Dataset":
    """Return data whose test set is a part of the training images."""
    from augury.data.split import split

    train, held_out = split(data.y_train.numpy(), test_fraction=VALIDATION, seed=seed)
    x, y = data.x_train, data.y_train
    return replace(data, x_train=x[train], y_train=y[train], x_test=x[held_out], y_test=y[held_out])
