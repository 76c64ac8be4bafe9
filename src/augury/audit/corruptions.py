"""Corrupted copies of a data set: inputs that nobody trained on, for asking whether an invariance survives.

A network that is invariant by its making is so on any input whatsoever; one that has learned it need not be.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import choose

Corrupt = Callable[[Tensor, torch.Generator], Tensor]


def noisy(x: Float[Tensor, "N ..."], rng: torch.Generator) -> Float[Tensor, "N ..."]:
    """Add Gaussian noise of the standard deviation of the inputs themselves."""
    return x + x.std() * torch.randn(x.shape, generator=rng, device=rng.device).to(x)


def inverted(x: Float[Tensor, "N ..."], rng: torch.Generator) -> Float[Tensor, "N ..."]:
    """Exchange dark and bright."""
    return x.min() + x.max() - x


def faded(x: Float[Tensor, "N ..."], rng: torch.Generator) -> Float[Tensor, "N ..."]:
    """Take three quarters of the contrast away."""
    return x.mean() + (x - x.mean()) / 4


def occluded(x: Float[Tensor, "N C H W"], rng: torch.Generator) -> Float[Tensor, "N C H W"]:
    """Hide a square of half the shorter side, at a random place of each image, under its mean."""
    N, H, W = len(x), *x.shape[-2:]
    side = min(H, W) // 2
    place = torch.rand(2, N, generator=rng, device=rng.device).to(x)
    hidden = []
    for start, size in zip(place, (H, W), strict=True):
        first = (start * (size - side + 1)).floor()[:, None]
        pixels = torch.arange(size, device=x.device)
        hidden.append((pixels >= first) & (pixels < first + side))
    under = hidden[0][:, None, :, None] & hidden[1][:, None, None, :]
    return torch.where(under, x.mean((1, 2, 3), keepdim=True), x)


CORRUPTIONS: dict[str, Corrupt] = {"noisy": noisy, "inverted": inverted, "faded": faded, "occluded": occluded}
"""Every corruption by its name."""

FOR_KIND = {"image": tuple(CORRUPTIONS)}
"""Those that make sense for a kind of data; noise alone for all others."""


def corrupt(name: str, x: Float[Tensor, "N ..."], rng: torch.Generator) -> Float[Tensor, "N ..."]:
    """Return a corrupted copy."""
    return CORRUPTIONS[choose("corruption", name, CORRUPTIONS)](x, rng)
