"""Layers whose initial weights come from an explicit generator, not from torch's global one."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

Layer = TypeVar("Layer", bound=nn.Module)


def bare(layer: type[Layer], *sizes: Any, **options: Any) -> Layer:
    """Make a layer with uninitialised weights; no random number is drawn."""
    return skip_init(layer, *sizes, **options)


def seeded(layer: type[Layer], *sizes: Any, rng: torch.Generator, **options: Any) -> Layer:
    """Make a layer with torch's default initial weights: uniform within 1 / sqrt(fan-in), biases too."""
    made = bare(layer, *sizes, **options)
    parameters = list(made.parameters())  # the weight, then the bias if there is one
    for p in parameters:
        uniform_(p, 1 / math.sqrt(parameters[0][0].numel()), rng)
    return made


@torch.no_grad()
def uniform_(weight: Tensor, bound: float, rng: torch.Generator) -> None:
    weight.copy_(bound * (torch.rand(weight.shape, generator=rng, device=rng.device) * 2 - 1))


@torch.no_grad()
def he_normal_(weight: Tensor, rng: torch.Generator, factor: float = 1.0) -> None:
    """Fill a convolution's weight with normal draws of variance factor^2 * 2 / fan-out."""
    fan_out = weight.shape[0] * weight[0, 0].numel()
    draw = torch.randn(weight.shape, generator=rng, device=rng.device)
    weight.copy_(factor * math.sqrt(2 / fan_out) * draw)


def swap_modules(net: nn.Module, kind: Any, make: Callable[[Any], nn.Module]) -> None:
    """Replace every module of a kind inside a network, in place."""
    for path, module in list(net.named_modules()):
        if isinstance(module, kind):
            parent, _, name = path.rpartition(".")
            setattr(net.get_submodule(parent), name, make(module))
