"""Saliency maps: the gradient of the largest logit, or one of captum's methods where captum is installed.

A map of the view g x is computed as the map of x under f(g(.)), so that every method brings it back to the frame of
x by itself (see `augury.evidence.invariance`).
"""

from collections.abc import Callable
from importlib import import_module

import torch
from jaxtyping import Float, Int
from torch import Tensor

from augury.core.errors import InputError, choose

Logits = Callable[[Tensor], Tensor]
"""From inputs [B, ...] to logits [B, C]."""

CAPTUM = {
    "integrated_gradients": "IntegratedGradients",
    "input_x_gradient": "InputXGradient",
    "feature_ablation": "FeatureAblation",
}
"""captum's methods that need nothing but a function, by our name for them."""

METHODS = ("gradient", *CAPTUM)
"""Every way to make a saliency map."""


def check_method(method: str) -> None:
    """Raise unless the method is known and what it needs is installed."""
    if choose("saliency", method, METHODS) in CAPTUM:
        _captum(method)


def captum_map(
    method: str, f: Logits, x: Float[Tensor, "B ..."], target: Int[Tensor, " B"]
) -> Float[Tensor, "B ..."]:
    """Return captum's attribution of chosen logits to the inputs."""
    attribute = _captum(method)(f).attribute
    with torch.enable_grad():
        maps: Tensor = attribute(x.detach().clone().requires_grad_(), target=target)
    return maps.detach().to(x.dtype)


def _captum(method: str) -> type:
    try:
        found: type = getattr(import_module("captum.attr"), CAPTUM[method])
    except ImportError as error:
        raise InputError(
            f"saliency '{method}' is captum's, which is not installed. "
            f"Install it (pip install captum), or take saliency 'gradient' (paper D's)."
        ) from error
    return found
