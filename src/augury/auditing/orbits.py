"""The views of an input that the audit looks at, how strong each of them is, and how they are undone.

A finite group has all its elements but the identity as views. Any other transformation is sampled at equal steps of
strength t = 1/L, 2/L, ..., 1 of its widths, in random directions u of its noise, each with its opposite:

    eps = +- t u / max_k |u_k|,   u uniform on [-1, 1]^K          (for one width: eps = +- t)

so that every strength counts alike and small ones are not lost among the corners of the cube. Views and their
inverses are differentiable in the inputs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError
from augury.core.units import WidthSpec
from augury.transforms.base import Transform
from augury.transforms.compose import Compose
from augury.transforms.finite_groups import CyclicRotation, FiniteGroup, Translations


class Moves(ABC):
    """One move for every input and view; inputs come as [B, S, ...], once for each view."""

    @abstractmethod
    def forth(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        """Transform."""

    @abstractmethod
    def undoable(self) -> "Moves":
        """Return the part of the moves that `back` undoes."""

    @abstractmethod
    def back(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        """Undo what `undoable().forth` does, up to interpolation."""

    def forth_and_back(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        """Transform and undo: what interpolation, padding and cropping alone do to the inputs."""
        there = self.undoable()
        return there.back(there.forth(x))


@dataclass(frozen=True, eq=False)
class Orbit:
    """The views of one input."""

    transform: Transform
    """What moves the inputs, with its widths set."""
    strengths: tuple[float, ...]
    """How strong each view is."""
    unit: str
    """"deg", "px", ...; "%" of the widths if there are several."""

    @property
    def S(self) -> int:
        """How many views there are."""
        return len(self.strengths)

    @property
    def name(self) -> str:
        """What the transformation is called."""
        return "+".join(self.transform.names)

    @property
    def levels(self) -> tuple[float, ...]:
        """The different strengths, weakest first."""
        return tuple(sorted(set(self.strengths)))

    def membership(self) -> Tensor:
        """Return the matrix [S, L] that averages over the views of each level."""
        at = torch.tensor(self.strengths)[:, None] == torch.tensor(self.levels)
        return at.double() / at.sum(0)

    def moves(self, B: int, rng: torch.Generator) -> Moves:
        """Draw what is done to the views of B inputs."""
        if isinstance(self.transform, FiniteGroup):
            return Elements(self.transform, tuple(range(1, self.transform.order)))
        parts = list(self.transform.parts) if isinstance(self.transform, Compose) else [self.transform]
        t = torch.linspace(0, 1, self.S // 2 + 1)[1:].repeat_interleave(2)
        return Chain(tuple(_draw(part, B, t, rng) for part in parts))  # type: ignore[arg-type]


def _draw(part: Transform, B: int, t: Tensor, rng: torch.Generator) -> Moves:
    """Draw elements of a finite part uniformly, and noise of strength t for any other."""
    if isinstance(part, FiniteGroup):
        elements = torch.randint(part.order, (len(t),), generator=rng, device=rng.device)
        return Elements(part, tuple(elements.tolist()))
    u = torch.rand(B, len(t) // 2, part.noise_dim, generator=rng, device=rng.device) * 2 - 1
    u = u / u.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(u.dtype).tiny)
    return Noise(part, torch.stack([u, -u], dim=2).flatten(1, 2) * t.to(u)[:, None])


def orbit_of(transform: Transform, shape: Sequence[int], levels: int = 8) -> Orbit:
    """Return the views that the audit of a transformation looks at."""
    if levels < 1:
        raise InputError(f"levels must be at least 1; got {levels}. Eight steps of strength are usual.")
    transform = deepcopy(transform).requires_grad_(False)
    if isinstance(transform, FiniteGroup):
        return Orbit(transform, *_elements(transform, shape))
    _fill_widths(transform)
    if _finite_names(transform) == set(transform.names):
        return Orbit(transform, (100.0,) * (2 * levels), "%")
    steps = [step / levels for step in range(1, levels + 1) for _ in "+-"]
    if len(transform.specs) > 1:
        return Orbit(transform, tuple(100 * t for t in steps), "%")
    unit, eta = transform.specs[0].unit, abs(transform.eta.item())
    return Orbit(transform, tuple(round(unit.to_person(t * eta), 4) for t in steps), unit.symbol)


def _elements(group: FiniteGroup, shape: Sequence[int]) -> tuple[tuple[float, ...], str]:
    """Return the strength of every element but the identity, and its unit."""
    others = range(1, group.order)
    if isinstance(group, CyclicRotation):
        return tuple(360 * j / group.order for j in others), "deg"
    if isinstance(group, Translations):
        return tuple(_shift(group, j, shape) for j in others), "px"
    return tuple(float(j) for j in others), "element"


def _shift(group: Translations, j: int, shape: Sequence[int]) -> float:
    """Return how far element j shifts on the torus, in pixels."""
    steps = {"xy": divmod(j, group.n), "y": (j, 0), "x": (0, j)}[group.axes]
    sides = [
        min(step, group.n - step) * (side // group.n) for step, side in zip(steps, shape[-2:], strict=True)
    ]
    return round(math.hypot(*sides), 4)


def _finite_names(transform: Transform) -> set[str]:
    groups = [module for module in transform.modules() if isinstance(module, FiniteGroup)]
    return {name for group in groups for name in group.names}


def _fill_widths(transform: Transform) -> None:
    """Give a transformation without widths those of the audit."""
    if not transform.eta.any():
        finite = _finite_names(transform)
        sampled = [spec for spec in transform.specs if spec.name not in finite]
        transform.set_widths({s.name: s.unit.to_person(default_eta(s)) for s in sampled})


def default_eta(spec: WidthSpec) -> float:
    """Return the width of the audit if none is given."""
    if spec.upper == math.pi:
        return math.pi
    return 1.0 if spec.name in ("grey", "blur") else 0.25


@dataclass(frozen=True)
class Elements(Moves):
    """One element of a finite group for each view."""

    group: FiniteGroup
    """The group."""
    elements: tuple[int, ...]
    """Which element each view takes."""

    def forth(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        """Apply the elements."""
        pairs = zip(x.unbind(1), self.elements, strict=True)
        return torch.stack([self.group.element(view, j) for view, j in pairs], dim=1)

    def undoable(self) -> "Moves":
        """Return all of it: every element has an inverse."""
        return self

    def back(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        """Apply the inverse elements."""
        inverse = tuple(self.group.inverse_of(j) for j in self.elements)
        return Elements(self.group, inverse).forth(x)


@dataclass(frozen=True, eq=False)
class Noise(Moves):
    """A transformation with given noise; the opposite noise undoes it."""

    transform: Transform
    """The transformation."""
    eps: Float[Tensor, "B S K"]
    """Noise for every input and view."""

    def forth(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        """Act with the noise."""
        B, S = x.shape[:2]
        eps = self.eps.to(x).reshape(B * S, 1, -1)
        return self.transform.act(x.flatten(0, 1), eps).squeeze(1).unflatten(0, (B, S))

    def undoable(self) -> "Moves":
        """Return the moves without the noise of one-way widths."""
        keep = [name not in self.transform.one_way for name in self.transform.names]
        return Noise(self.transform, self.eps * self.eps.new_tensor(keep))

    def back(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        """Act with the opposite noise: exp(-A) undoes exp(A)."""
        return Noise(self.transform, -self.eps).forth(x)


@dataclass(frozen=True)
class Chain(Moves):
    """Several moves one after the other."""

    parts: tuple[Moves, ...]
    """First to act first."""

    def forth(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        """Apply them in their order."""
        for part in self.parts:
            x = part.forth(x)
        return x

    def undoable(self) -> "Moves":
        """Return the undoable part of each."""
        return Chain(tuple(part.undoable() for part in self.parts))

    def back(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        """Undo them, the last one first."""
        for part in reversed(self.parts):
            x = part.back(x)
        return x
