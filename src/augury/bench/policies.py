"""The policies that are compared, on which data, with which settings. Free of torch.

Every training of a row has the same network, images, epochs, batches, optimiser and views per input; every row is
evaluated with as many views. What differs is who chooses the policy, and how many trainings that takes. The fixed
policy, the ranges of the random one and the grid were written down before any result was seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from augury.papers.cell import ORIGINAL, Cell

SHIFT = 4.0
"""Pixels of the customary padded crop."""

FIXED = {"flip_x": 50.0, "translate_x": SHIFT, "translate_y": SHIFT}
"""What most training scripts do: a mirror for half of the images, a crop after padding by four pixels."""

ROTATIONS, SHIFTS = (0.0, 30.0, 90.0, 180.0), (0.0, SHIFT)
VALIDATION = 0.2
"""The grid that a careful person would search, and the share of the training images that it is judged on."""

_NO_EVIDENCE = {"evidence": "none", "samples": 1, "samples_eval": 1}


@dataclass(frozen=True)
class Policy:
    """One row of the table."""

    method: str
    """As in `Cell.method`: the algorithm, and after the slash what tells rows apart."""
    what: str
    """What it is, for a person."""
    settings: Mapping[str, Any]
    """Settings of `LearnConfig` that are its own."""


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
    """How large a comparison is."""

    rows: tuple[tuple[str, str, str], ...]
    """Data, variant and network."""
    images: int
    """Training images."""
    test_images: int
    """Test images."""
    settings: Mapping[str, Any]
    """Settings that all rows share."""


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
    """Return the cells of a comparison, seed by seed."""
    size = SCALES[scale]
    return [
        Cell(
            data, variant, model, policy.method, seed, settings(scale, policy), size.images, size.test_images
        )
        for seed in seeds
        for data, variant, model in size.rows
        for policy in POLICIES.values()
    ]


def settings(scale: str, policy: Policy) -> dict[str, Any]:
    """Return the settings of one row."""
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
