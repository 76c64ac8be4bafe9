"""The policies that are compared, on which data, with which settings, and how one is run. Torch loads inside.

Every training of a data set has the same network, images, steps, batches and optimiser, with one view per input; every
row is evaluated with as many views. What differs is who chooses the policy, and how many trainings that takes. The
fixed policies, the ranges of the random ones and the grids were written down before any result was seen.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from papers.learning import data_of, result_of
from papers.results import ORIGINAL, Cell, Result

if TYPE_CHECKING:
    from augury.data.dataset import Dataset
    from augury.methods.learn import Learned

CROP = 1 / 8
"""Shift of the customary padded crop, as a share of the side: 4 of 32 pixels."""
ROTATIONS = (0.0, 30.0, 90.0, 180.0)
TURNS = (0.0, 1 / 8, 1 / 4, 1 / 2)
"""What a careful person would search on images, and, as shares of the length, on closed outlines."""
VALIDATION = 0.2
"""The share of the training data that decides a search."""


@dataclass(frozen=True)
class Policy:
    """One row of the table: its method as in `Cell.method`, what it is, and settings of its own."""

    method: str
    what: str
    settings: Mapping[str, Any] = field(default_factory=dict)


POLICIES = {
    "none": Policy("plain", "no augmentation", {"evidence": "none"}),
    "none, prior learned": Policy("plain/prior", "no augmentation, LILA's prior"),
    "fixed": Policy("augmented/fixed", "mirror and padded crop; outlines: shift in time and gain"),
    "random": Policy("augmented/trivial", "one random operation per view, in the ranges of RandAugment"),
    "TrivialAugment": Policy(
        "augmented/wide", "mirror, padded crop, one random operation in TrivialAugment's wide ranges"
    ),
    "grid": Policy("augmented/grid", "search on a validation split: rotation and crop; outlines: shift and mirror"),
    "augerino": Policy("augerino", "widths by the training loss with a reward"),
    "lila": Policy("lila", "widths by the evidence"),
    "lila, exported": Policy("augmented/exported", "LILA's policy as plain augmentation of a new training"),
}
"""Every row, by its name."""


@dataclass(frozen=True)
class Place:
    """Data, variant, network and how many inputs; settings for all of its rows; rows that it has not."""

    data: str
    variant: str
    model: str
    images: int | None
    test_images: int | None
    settings: Mapping[str, Any]
    without: tuple[str, ...] = ()


QUICK = {"epochs": 2, "samples": 1, "samples_eval": 2, "batch": 20, "burn_in": 0, "evidence_below": 9.0}
QUICK |= {"evidence_images": 20, "eta_images": 10, "eta_steps": 1}
SMALL = {"steps": 2400, "batch": 50, "resting": 10}

PLACES = {
    "quick": (Place("mnist5k", "rotated", "mlp5", 40, 40, QUICK),),
    "small": (
        Place("fashion_mnist", "rotated", "cnn", 1000, 2000, SMALL),
        Place("fashion_mnist", ORIGINAL, "cnn", 1000, 2000, SMALL),
        Place("cifar10_12k", ORIGINAL, "cnn", 1000, 2000, SMALL),
        Place("OSULeaf", ORIGINAL, "outline_cnn", None, None, SMALL, ("TrivialAugment",)),
        Place("cifar10_12k", ORIGINAL, "cnn", 5000, 2000, SMALL),
        Place("imagenette64", ORIGINAL, "cnn", 1000, 1000, SMALL),
    ),
}
"""Seconds, to see that it works; and a comparison worth reading, for one core and about an hour a seed."""

EVIDENCE_ONLY = ("burn_in", "evidence_images", "eta_images", "eta_steps", "evidence_below", "resting")


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    return [
        Cell(
            place.data, place.variant, place.model, policy.method, seed, settings(place, policy),
            place.images, place.test_images,
        )
        for seed in seeds
        for place in PLACES[scale]
        for name, policy in POLICIES.items()
        if name not in place.without
    ]  # fmt: skip


def settings(place: Place, policy: Policy) -> dict[str, Any]:
    own = {**place.settings, **policy.settings}
    bayesian = policy.method in ("lila", "augmented/exported", "plain/prior")
    return {name: value for name, value in own.items() if bayesian or name not in EVIDENCE_ONLY}


def fixed(data: "Dataset") -> dict[str, float]:
    """Return what most training scripts do: mirror and crop; for signals a small shift in time and a gain."""
    side = data.input_shape[-1]
    if data.kind == "signal":
        return {"time_shift": side / 20, "amplitude": 1.1}
    return {"flip_x": 50.0, "translate_x": CROP * side, "translate_y": CROP * side}


def candidates(data: "Dataset") -> list[dict[str, float]]:
    """Return the widths that the search tries, none at all first."""
    side = data.input_shape[-1]
    if data.kind == "signal":
        tried = [{"circular_shift": t * side, "mirror": m} for t in TURNS for m in (0.0, 50.0)]
    else:
        tried = [{"rotation": r, "translate_x": t, "translate_y": t} for r in ROTATIONS for t in (0.0, CROP * side)]
    return [{name: value for name, value in widths.items() if value} for widths in tried]


def run(cell: Cell, device: str = "cpu") -> Result:
    """Run one cell from start to end: one training, or all those of a search."""
    data = data_of(cell)
    started, before = time.process_time(), 0.0
    search: dict[str, Any] = {"trainings": 1}
    if cell.method == "augmented/grid":
        learned, search = _search(cell, data, device)
    elif cell.method == "augmented/exported":
        taught, before = _lila(replace(cell, method="lila"), device)
        started = time.process_time()  # its own seconds; those of LILA are `before`
        learned = _given(cell, data, _policy(taught, data), device)
        search = {"trainings": 2}
    elif cell.method == "lila":
        learned, _ = _lila(cell, device)
    elif cell.method == "augmented/fixed":
        learned = _given(cell, data, fixed(data), device)
    else:
        learned = _learn(cell, data, device)
    return result_of(cell, data, learned, cpu_seconds=before + time.process_time() - started, **search)


_LAST: dict[str, "tuple[Learned, float]"] = {}
"""The last run by the evidence, by the key of its cell: the row that exports its policy takes the same run."""


def _lila(cell: Cell, device: str) -> "tuple[Learned, float]":
    """Learn by the evidence, and return the seconds it took."""
    if cell.key not in _LAST:
        _LAST.clear()
        started = time.process_time()
        learned = _learn(cell, data_of(cell), device)
        _LAST[cell.key] = learned, time.process_time() - started
    return _LAST[cell.key]


def _policy(taught: "Learned", data: "Dataset") -> dict[str, float]:
    from augury.export.policy import policy_of

    return policy_of(taught.invariance, data.kind, data.input_shape).widths_for()


def _given(cell: Cell, data: "Dataset", widths: dict[str, float], device: str) -> "Learned":
    if not widths:
        return _learn(cell, data, device, method="plain", evidence="none")
    kept = {name: value for name, value in cell.settings.items() if name not in EVIDENCE_ONLY}
    return _learn(replace(cell, settings=kept), data, device, generators=tuple(widths), widths=widths)


def _learn(cell: Cell, data: "Dataset", device: str, **changed: Any) -> "Learned":
    from augury.methods.learn import learn
    from papers.policies.trivial import trivial, wide

    random = {"augmented/trivial": trivial, "augmented/wide": wide}.get(cell.method)
    settings = {"device": device, **cell.settings, **changed, "seed": cell.seed}
    method = settings.pop("method", cell.algorithm)
    transform = random(data.input_shape) if random else None
    return learn(data, model=cell.model, method=method, transform=transform, **settings)


def _search(cell: Cell, data: "Dataset", device: str) -> "tuple[Learned, dict[str, Any]]":
    """Train every candidate on a part of the data, choose by the rest, train the chosen one on all of them."""
    part = validation_split(data, cell.seed)
    tried: list[dict[str, Any]] = []
    for widths in candidates(data):
        accuracy = _given(cell, part, widths, device).invariance.test_accuracy
        tried.append({"widths": widths, "accuracy": accuracy})
    best = max(tried, key=lambda entry: entry["accuracy"])  # of equals the first, which moves least
    final = _given(cell, data, best["widths"], device)
    return final, {"trainings": len(tried) + 1, "chosen": best["widths"], "tried": tried}


def validation_split(data: "Dataset", seed: int) -> "Dataset":
    """Return data whose test set is a part of the training inputs."""
    from augury.data.split import split

    train, held_out = split(data.y_train.numpy(), test_fraction=VALIDATION, seed=seed)
    x, y = data.x_train, data.y_train
    return replace(data, x_train=x[train], y_train=y[train], x_test=x[held_out], y_test=y[held_out])
