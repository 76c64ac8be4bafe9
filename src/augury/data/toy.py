"""Points in the plane with a chosen amount of rotational symmetry (the toy problems of papers A and B, figure 1).

The width w says how far a point may be turned, from the middle of its arc, before its label changes:

    w = 180         two rings: the label is the radius, every rotation leaves it alone
    w = 90, 45      180 / w arcs on each of two rings, neighbours of different class, those of the other ring swapped;
                    each arc is filled to half, so that a margin separates the classes
    w = 0           a chequerboard of 4 x 4 cells: turning changes labels everywhere

Of orbit-averaged models the evidence is then greatest at w (a test holds this for a Gaussian process), which would
not be so had points merely been smeared by +-w: with nothing of the other class nearby, a wider average costs nothing.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.data.dataset import Dataset

ROTATIONS = (0.0, 45.0, 90.0, 180.0)
"""Widths in degrees that can be planted."""


def toy(
    rotation: float = 180.0, n: int = 200, n_test: int = 1000, noise: float = 0.1, seed: int = 0
) -> Dataset:
    """Return a two-class problem in the plane."""
    if rotation not in ROTATIONS:
        widths = ", ".join(f"{w:g}" for w in ROTATIONS)
        raise InputError(f"rotation of the toy data must be one of {widths} degrees; got {rotation}.")
    rng = generator(seed)
    x, y = _points(rotation, n + n_test, noise, rng)
    return Dataset(
        x[:n], y[:n], x[n:], y[n:],
        kind="coordinates", class_names=("o", "x"), source=f"toy ({rotation:g} deg)", planted={"rotation": rotation},
    )  # fmt: skip


def _points(
    rotation: float, n: int, noise: float, rng: torch.Generator
) -> tuple[Float[Tensor, "{n} 2"], Int[Tensor, " {n}"]]:
    u = torch.rand(n, 3, generator=rng)
    if rotation == 0:
        x = 4 * u[:, :2] - 2
        return x, x.floor().long().sum(1) % 2
    ring = (2 * u[:, 0]).long()
    if rotation == 180:
        y, angle = ring, 2 * math.pi * u[:, 1]
    else:
        arcs = round(180 / rotation)
        arc = (arcs * u[:, 1]).long()
        y = (arc + ring) % 2
        angle = (2 * math.pi / arcs) * (arc + (u[:, 2] - 0.5) / 2)
    radius = 1 + ring + noise * torch.randn(n, generator=rng)
    return radius[:, None] * torch.stack([angle.cos(), angle.sin()], 1), y
