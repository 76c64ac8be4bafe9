"""Every setting of paper A's runs, in one place: by scale, data, network and method.

`paper` follows the paper and its code (one eta step per epoch over all the data on MNIST, a hundred mini-batch steps on
CIFAR-10); `small` is our own cheaper schedule; `quick` only shows that everything works.
"""

from collections.abc import Mapping
from typing import Any

from augury.data.named import find

METHODS = ("lila", "plain", "augerino")
"""LILA, the non-invariant network (its prior learned by the evidence, as in the paper), Augerino."""
VARIANTS = ("rotated", "partially_rotated", "translated", "scaled", "original")

Settings = Mapping[str, Any]

QUICK = {
    "epochs": 2,
    "samples": 2,
    "samples_eval": 2,
    "batch": 20,
    "evidence_images": 40,
    "eta_images": 20,
    "eta_steps": 2,
    "evidence_every": 1,
    "burn_in": 0,
}

SMALL = {
    "epochs": 20,
    "samples": 8,
    "batch": 100,
    "evidence_images": 500,
    "eta_images": 64,
    "eta_steps": 12,
    "evidence_every": 1,
    "burn_in": 2,
    "delta_steps": 30,
    "eta_rate_end": 0.02,
}
"""For MNIST and Fashion-MNIST at 5,000 images. The prior precision follows its optimum at every climb: where it lags
behind, weights cost too much, wide orbits that simplify them look good, and translations run to their bound."""

SMALL_CNN = {"delta_steps": 10}
"""What differs for the CNN on MNIST: with 30 its rotation was still on the way when the schedule ended."""

SMALL_FASHION = {"evidence_every": 2}
"""What differs for Fashion-MNIST at 1,000 images."""

SMALL_RESNET = {
    "epochs": 25,
    "samples": 4,
    "batch": 50,
    "evidence_images": 500,
    "eta_steps": 8,
    "evidence_every": 2,
    "prior": "tensor",
}
"""What differs for residual networks, at 1,000 images of CIFAR-10; the prior is the paper's."""

_PAPER = {
    "burn_in": 10,
    "evidence_every": 1,
    "delta": 1.0,
    "delta_steps": 1,
    "output": "ggn",
    "positions": "expand",
    "eta_rate": 0.05,
}

PAPER_MNIST = {
    **_PAPER,
    "samples": 31,
    "samples_eval": 31,
    "batch": 1000,
    "evidence_images": 60_000,
    "eta_images": 60_000,
    "eta_steps": 1,
    "eta_rate_end": 0.05,
}
PAPER_CIFAR = {
    **_PAPER,
    "samples": 20,
    "samples_eval": 20,
    "batch": 250,
    "prior": "tensor",
    "delta_steps": 4,
    "evidence_images": 50_000,
    "eta_images": 250,
    "eta_steps": 100,
    "eta_rate_end": 0.005,
}
PAPER_WIDE = {**PAPER_CIFAR, "batch": 128, "eta_images": 128, "delta_rate": 0.1}

AUGERINO_PAPER = {"eta_rate": 0.005, "eta_rate_end": 0.005, "sampling": "independent"}
"""As the paper's baseline has it; Augury's defaults were made to reach a planted rotation in a short run."""

EVIDENCE_ONLY = ("burn_in", "evidence_every", "evidence_images", "eta_images", "eta_steps")
"""Settings that mean nothing to Augerino."""


def settings(scale: str, data: str, model: str, method: str, epochs: int | None = None) -> dict[str, Any]:
    """Return the settings of one run."""
    chosen = dict(_base(scale, data, model))
    if epochs is not None:
        chosen["epochs"] = epochs
    if method == "plain":
        chosen |= {"samples": 1, "samples_eval": 1}
    if method == "augerino":
        keep = {} if scale == "quick" else AUGERINO_PAPER
        bayesian = (
            *EVIDENCE_ONLY,
            "eta_rate_end",
            "delta",
            "output",
            "positions",
            "prior",
            "delta_steps",
            "delta_rate",
        )
        chosen = {k: v for k, v in chosen.items() if k not in bayesian} | keep
    return chosen


def _base(scale: str, data: str, model: str) -> Settings:
    if scale == "quick":
        return QUICK
    if scale == "small":
        fashion = SMALL_FASHION if data == "fashion_mnist" else {}
        cnn = SMALL_CNN if model == "cnn" and data.startswith("mnist") else {}
        return {**SMALL, **fashion, **cnn, **(SMALL_RESNET if "resnet" in model else {})}
    if "wide" in model:
        return {**PAPER_WIDE, "epochs": 200}
    if data.startswith("cifar"):
        return {**PAPER_CIFAR, "epochs": 200}
    return {**PAPER_MNIST, "epochs": 300 if model == "cnn" else 1000}


def digits(scale: str) -> str:
    """Return which MNIST to use: the complete one where it is there, else the 5,000 images that ship."""
    return "mnist" if scale == "paper" or (scale == "small" and find("mnist")) else "mnist5k"


TOY: dict[str, dict[str, Any]] = {
    "quick": {**QUICK, "evidence_images": 200, "batch": 50},
    "small": {
        "epochs": 100,
        "samples": 20,
        "samples_eval": 100,
        "batch": 50,
        "evidence_images": 200,
        "eta_images": 50,
        "eta_steps": 4,
        "evidence_every": 1,
        "burn_in": 10,
    },
    "paper": {
        **_PAPER,
        "epochs": 1000,
        "samples": 100,
        "samples_eval": 100,
        "batch": 200,
        "evidence_images": 200,
        "eta_images": 200,
        "eta_steps": 1,
        "eta_rate_end": 0.05,
    },
}
"""For 200 points in the plane and an MLP of 50 units, by scale."""
