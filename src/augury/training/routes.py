"""Ways through the orbit of an input, for a person to walk along: one width after the other, then all together.

A route along one width leaves the others at zero and goes beyond what was learned, up to twice as far, so that one
sees where the model's answer breaks; angles make the full turn. A finite group shows its elements. All widths
together stay inside the learned distribution, on the closed curve

    eps_k(t) = sin(2 pi (m_k t + k / K)),   m_k = 1, 2, 1, 2, ...,   0 <= t < 1.
"""

import math
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.units import Unit, WidthSpec
from augury.transforms.base import Transform
from augury.transforms.compose import Compose
from augury.transforms.correlated import Correlated
from augury.transforms.finite_group import FiniteGroup

STEPS = 25
"""Frames of a route: odd, so that the input itself is one of them; steps of 15 degrees for a full turn."""
WIDTHS = 2
"""Widths that get a route of their own, the largest ones."""
NEAR = 0.25
"""Smallest reach of a route, as eta: an eighth of the image, a factor of 1.28."""
TOGETHER = "all widths together"
ELEMENT = "element"
"""Unit of a route through a finite group."""


@dataclass(frozen=True, eq=False)
class Walk:
    """A route with the moved inputs."""

    name: str
    """The width, or `TOGETHER`."""
    unit: str
    """Its unit."""
    at: tuple[float, ...]
    """Where each step is."""
    learned: float | None
    """The learned width; None where all move together."""
    views: Float[Tensor, "B S ..."]
    """The inputs at each step."""


def walks(transform: Transform, x: Float[Tensor, "B ..."]) -> list[Walk]:
    """Return the routes worth walking through the orbits of some inputs."""
    with torch.no_grad():
        entries = _entries(transform)
        plain = [entry for entry in entries if _has_own_noise(entry.part)]
        largest = sorted(plain, key=lambda entry: -entry.eta)[:WIDTHS]
        found = [_alone(entry, x) for entry in largest]
        if sum(entry.eta > 0 for entry in entries) > 1:
            found.append(_together(transform, x))
    return found


@dataclass(frozen=True, eq=False)
class _Entry:
    part: Transform
    k: int
    spec: WidthSpec
    eta: float


def _entries(transform: Transform) -> list[_Entry]:
    """Return every width with the part of a composition that it belongs to."""
    parts = list(transform.parts) if isinstance(transform, Compose) else [transform]
    found = []
    for part in parts:
        assert isinstance(part, Transform)
        etas = part.eta.detach().abs().tolist()
        found += [_Entry(part, k, spec, etas[k]) for k, spec in enumerate(part.specs)]
    return found


def _has_own_noise(part: Transform) -> bool:
    return isinstance(part, FiniteGroup) or part.noise_dim == len(part.specs)


def _reach(spec: WidthSpec, eta: float) -> float:
    return math.pi if spec.upper == math.pi else min(spec.upper, max(2 * eta, NEAR))


def _alone(entry: _Entry, x: Tensor) -> Walk:
    part, spec, learned = entry.part, entry.spec, entry.spec.unit.to_person(entry.eta)
    if isinstance(part, FiniteGroup):
        orbit = part.orbit(x)
        return Walk(spec.name, ELEMENT, tuple(map(float, range(part.order))), learned, orbit)
    if isinstance(part, Correlated):
        part = part.transform
    part, reach = deepcopy(part), _reach(spec, entry.eta)
    part.set_widths({s.name: s.unit.to_person(0.0) for s in part.specs})
    part.set_widths({spec.name: spec.unit.to_person(reach)})
    first = 0.0 if spec.name in part.one_way else -1.0
    t = torch.linspace(first, 1.0, STEPS, dtype=x.dtype, device=x.device)
    eps = t.new_zeros(len(x), STEPS, part.noise_dim)
    eps[:, :, entry.k] = t
    at = tuple(signed(spec.unit, reach * step) for step in t.tolist())
    return Walk(spec.name, spec.unit.symbol, at, learned, part.act(x, eps))


def signed(unit: Unit, eta: float) -> float:
    """Return how far a step of either direction goes, in a unit; the opposite of a factor is its inverse."""
    size = unit.to_person(abs(eta))
    if unit.symbol == "factor":
        return round(size if eta >= 0 else 1 / size, 4)
    return round(math.copysign(size, eta), 4) + 0.0


def _together(transform: Transform, x: Tensor) -> Walk:
    K = transform.noise_dim
    t, k = torch.arange(STEPS, device=x.device)[:, None] / STEPS, torch.arange(K, device=x.device)
    eps = torch.sin(2 * math.pi * ((1 + k % 2) * t + k / K)).to(x)
    views = transform.act(x, eps.expand(len(x), STEPS, K))
    return Walk(TOGETHER, "", tuple(map(float, range(1, STEPS + 1))), None, views)
