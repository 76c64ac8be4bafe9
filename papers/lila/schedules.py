"""Every setting of paper A's runs, in one place: by scale, data, network and method.

`paper` follows the paper and its code (one eta step per epoch over all the data on MNIST, a hundred mini-batch steps on
CIFAR-10); `small` has fewer images and our own cheaper recipe; `quick` only shows that everything works.
"""

from collections.abc import Mapping
from typing import Any

from papers.results import Cell

METHODS = ("lila", "plain", "augerino")
"""LILA, the non-invariant network (its prior learned by the evidence, as in the paper), Augerino."""
VARIANTS = ("rotated", "partially_rotated", "translated", "scaled", "original")

Settings = Mapping[str, Any]


def evidence(images: int, eta_images: int, eta_steps: int, every: int = 1) -> dict[str, Any]:
    """Return the settings of the evidence: inputs behind the factors, inputs and number of the width steps, epochs."""
    counts = {"evidence_images": images, "eta_images": eta_images, "eta_steps": eta_steps}
    return {**counts, "evidence_every": every}


QUICK = {"epochs": 2, "samples": 2, "samples_eval": 2, "batch": 20, "burn_in": 0, **evidence(40, 20, 2)}

SLOW = {"epochs": 20, "samples": 8, "batch": 100, "burn_in": 2, "delta_steps": 30, "eta_rate_end": 0.02}
SLOW |= evidence(500, 64, 12)
"""Of `recovery`, at 5,000 digits, with the recipe of version 0.1. The prior precision follows its optimum at every
evidence step: where it lags behind, weights cost too much, wide orbits that simplify them look good, and translations
run to their bound."""

SLOW_CNN = {"delta_steps": 10}
"""What differs for the CNN: with 30 its rotation was still on the way when the schedule ended."""

SMALL = {"steps": 600, "batch": 50}
"""Of everything else: the recipe `papers.recipes.STEPS`, with a quarter of the library's steps."""
SMALL_CIFAR = {**SMALL, "steps": 2400, "prior": "layer"}
"""Of residual networks, all the steps: after 600 their loss is still too near that of a guess for a step up the
evidence; one prior precision for all weights would leave an evidence below a guess's."""

SGD = {"optimizer": "sgd", "rate": 0.1}
"""How paper A trains its residual networks."""

PAPER = {"burn_in": 10, "delta": 1.0, "delta_steps": 1, "output": "ggn", "positions": "expand", "eta_rate": 0.05}
PAPER_MNIST = {**PAPER, "samples": 31, "samples_eval": 31, "batch": 1000, "eta_rate_end": 0.05}
PAPER_MNIST |= evidence(60_000, 60_000, 1)
PAPER_CIFAR = {**PAPER, "samples": 20, "samples_eval": 20, "batch": 250, "eta_rate_end": 0.005}
PAPER_CIFAR |= {**SGD, "prior": "tensor", "delta_steps": 4, **evidence(50_000, 250, 100)}
PAPER_WIDE = {**PAPER_CIFAR, "batch": 128, "eta_images": 128, "delta_rate": 0.1}

TOY: dict[str, dict[str, Any]] = {
    "quick": {**QUICK, "evidence_images": 200, "batch": 50},
    "small": {"epochs": 100, "samples": 20, "samples_eval": 100, "batch": 50, "burn_in": 10, "output": "ggn"},
    "paper": {**PAPER_MNIST, "epochs": 1000, "samples": 100, "samples_eval": 100, "batch": 200},
}
TOY["small"] |= evidence(200, 50, 4)
TOY["paper"] |= evidence(200, 200, 1)
"""For 200 points in the plane and an MLP of 50 units, by scale."""

AUGERINO_PAPER = {"eta_rate": 0.005, "eta_rate_end": 0.005, "sampling": "independent"}
"""As the paper's baseline has it; Augury's defaults were made to reach a planted rotation in a short run."""

BAYESIAN = (
    *("burn_in", "evidence_every", "evidence_images", "eta_images", "eta_steps", "eta_rate_end"),
    *("delta", "output", "positions", "prior", "delta_steps", "delta_rate"),
)
"""Settings that mean nothing to Augerino."""
TEST_IMAGES = {"quick": 50, "small": 2000, "paper": None}
"""Test images by scale."""


def cell(
    scale: str,
    data: str,
    variant: str,
    model: str,
    method: str,
    seed: int,
    images: int | None,
    epochs: int | None = None,
    slow: bool = False,
    **changed: Any,
) -> Cell:
    chosen = settings(scale, data, model, method.partition("/")[0], epochs, slow) | changed
    return Cell(data, variant, model, method, seed, chosen, images, TEST_IMAGES[scale])


def settings(
    scale: str, data: str, model: str, method: str, epochs: int | None = None, slow: bool = False
) -> dict[str, Any]:
    if scale == "small" and not slow:
        keep = AUGERINO_PAPER if method == "augerino" else {}
        return {**(SMALL_CIFAR if data.startswith("cifar") else SMALL), **keep}
    chosen = dict(_base(scale, data, model))
    if epochs is not None:
        chosen["epochs"] = epochs
    if method == "plain":
        chosen |= {"samples": 1, "samples_eval": 1}
    if method == "augerino":
        keep = {} if scale == "quick" else AUGERINO_PAPER
        chosen = {k: v for k, v in chosen.items() if k not in BAYESIAN} | keep
    return chosen


def _base(scale: str, data: str, model: str) -> Settings:
    if scale == "quick":
        return QUICK
    if scale == "small":
        return {**SLOW, **(SLOW_CNN if model == "cnn" else {})}
    if "wide" in model:
        return {**PAPER_WIDE, "epochs": 200}
    if data.startswith("cifar"):
        return {**PAPER_CIFAR, "epochs": 200}
    return {**PAPER_MNIST, "epochs": 300 if model == "cnn" else 1000}
