"""The measures of paper D on one batch: LI, DI, SI and agreement, for every input and view.

Two forward passes (the inputs; their views, folded into the batch axis) and two backward passes for the saliency
maps: the gradient of the largest logit, or one of captum's methods if captum is installed. The map of the view g x is
the map of x under f(g(.)), which is already in the frame of x (see `augury.evidence.invariance`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.evidence.invariance import distribution_error, gradient_of_largest, logit_error, similarity

Logits = Callable[[Tensor], Tensor]  # from inputs [B, ...] to logits [B, C]
ToViews = Callable[[Tensor], Tensor]  # from inputs [B, S, ...], each repeated once per view, to their views


@dataclass(frozen=True, eq=False)
class Comparison:
    """The measures of a batch of inputs and their views."""

    views: Float[Tensor, "B S ..."]
    f: Float[Tensor, "B C"]  # logits of the inputs
    f_g: Float[Tensor, "B S C"]  # logits of the views
    LI: Float[Tensor, "B S"]  # logit invariance errors
    DI: Float[Tensor, "B S"]  # distribution invariance errors
    agree: Bool[Tensor, "B S"]  # whether a view has its input's prediction
    SI: Float[Tensor, "B S"] | None  # saliency invariance similarities; None without gradients
    m: Float[Tensor, "B ..."] | None  # saliency maps of the inputs
    m_g: Float[Tensor, "B S ..."] | None  # saliency maps of the views, in the frame of the inputs


def compare(
    model: Logits, x: Float[Tensor, "B ..."], to_views: ToViews, S: int, saliency: str | None = "gradient"
) -> Comparison:
    """Compare a model's outputs for inputs and for their S views."""
    copies = x[:, None].expand(-1, S, *x.shape[1:]).detach()
    m: Tensor | None = None
    m_g: Tensor | None = None
    if saliency == "gradient":
        _, f, m = _with_gradient(model, x.detach(), lambda x: x)
        views, flat, m_g = _with_gradient(model, copies, lambda x: to_views(x).flatten(0, 1))
    else:
        with torch.no_grad():
            views = to_views(copies).flatten(0, 1)
            f, flat = model(x), model(views)
        if saliency is not None:  # the largest logit of f, and of f(g(.)), attributed to x

            def of_views(rows: Tensor) -> Tensor:  # captum may concatenate several batches
                parts = [part.unflatten(0, copies.shape[:2]) for part in rows.split(len(flat))]
                return model(torch.cat([to_views(part).flatten(0, 1) for part in parts]))

            m = captum_map(saliency, model, x, f.argmax(-1))
            m_g = captum_map(saliency, of_views, copies.flatten(0, 1), flat.argmax(-1)).unflatten(0, copies.shape[:2])
    f_g, views = (rows.unflatten(0, (len(x), S)) for rows in (flat, views))
    SI = None if m is None or m_g is None else similarity(m, m_g)
    agree = f_g.argmax(-1) == f.argmax(-1)[:, None]
    return Comparison(views, f, f_g, logit_error(f, f_g), distribution_error(f, f_g), agree, SI, m, m_g)


def _with_gradient(model: Logits, x: Tensor, to_views: ToViews) -> tuple[Tensor, Tensor, Tensor]:
    """Return the views of x, their logits, and the gradient in x of the largest logit."""
    with torch.enable_grad():
        x = x.requires_grad_()
        views = to_views(x)
        f = model(views)
        return views.detach(), f.detach(), gradient_of_largest(f, x)


CAPTUM = {
    "integrated_gradients": "IntegratedGradients",
    "input_x_gradient": "InputXGradient",
    "feature_ablation": "FeatureAblation",
}
"""captum's methods that need only a function, by our names for them."""

METHODS = ("gradient", *CAPTUM)


def check_method(method: str) -> None:
    """Raise unless the saliency method is known and installed."""
    if choose("saliency", method, METHODS) in CAPTUM:
        _captum(method)


def captum_map(method: str, f: Logits, x: Float[Tensor, "B ..."], target: Int[Tensor, " B"]) -> Float[Tensor, "B ..."]:
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
            f"Install it (pip install captum), or use saliency 'gradient' (paper D's)."
        ) from error
    return found
