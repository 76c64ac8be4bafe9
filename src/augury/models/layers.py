"""Layers whose first weights come from an explicit generator.

torch's own constructors draw from the global generator. Here a layer is made without drawing, then filled:
the same `rng` gives the same network, and nobody else's random numbers move.
"""

import math
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

Layer = TypeVar("Layer", bound=nn.Module)


def bare(layer: type[Layer], *sizes: Any, **options: Any) -> Layer:
    """Make a layer whose weights hold no meaning yet; no random number is drawn."""
    return skip_init(layer, *sizes, **options)


def seeded(layer: type[Layer], *sizes: Any, rng: torch.Generator, **options: Any) -> Layer:
    """Make a layer with torch's usual first weights: uniform within 1 / sqrt(inputs of one unit), biases too."""
    made = bare(layer, *sizes, **options)
    parameters = list(made.parameters())  # the weight, then the bias where there is one
    bound = 1 / math.sqrt(parameters[0][0].numel())
    for p in parameters:
        draw = torch.rand(p.shape, generator=rng, device=rng.device) * 2 - 1
        _fill(p, bound * draw)
    return made


def he_normal_(weight: Tensor, rng: torch.Generator, factor: float = 1.0) -> None:
    """Fill a convolution's weight with normal draws of variance factor^2 * 2 / (outputs fed by one input)."""
    fan_out = weight.shape[0] * weight[0, 0].numel()
    draw = torch.randn(weight.shape, generator=rng, device=rng.device)
    _fill(weight, factor * math.sqrt(2 / fan_out) * draw)


def zeros_(layer: nn.Module) -> None:
    """Fill every parameter of a layer with zeros."""
    for p in layer.parameters():
        _fill(p, torch.zeros(p.shape))


@torch.no_grad()
def _fill(parameter: Tensor, values: Tensor) -> None:
    parameter.copy_(values)
