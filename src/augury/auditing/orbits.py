"""The views of an input that the audit uses, and the strength of each.

For a finite group: all elements but the identity. For any other transformation: equal steps of strength t = 1/L,
2/L, ..., 1 of its widths, in random directions u of its noise, each with its opposite:

    eps = +- t u / max_k |u_k|,   u uniform on [-1, 1]^K          (for one width: eps = +- t)

so that every strength has equal weight and small ones are not lost among the corners of the cube.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError
from augury.core.rng import rows
from augury.transforms.base import Transform
from augury.transforms.compose import Compose
from augury.transforms.finite_groups import CyclicRotation, FiniteGroup, Translations


@dataclass(frozen=True, eq=False)
class Orbit:
    """The views of one input."""

    transform: Transform  # with its widths set
    strengths: tuple[float, ...]  # strength of each view
    unit: str  # "deg", "px", ...; "%" of the widths where there are several

    @property
    def S(self) -> int:
        return len(self.strengths)

    @property
    def name(self) -> str:
        return "+".join(self.transform.names)

    @property
    def levels(self) -> tuple[float, ...]:
        """The different strengths, weakest first."""
        return tuple(sorted(set(self.strengths)))

    def membership(self) -> Tensor:
        """Return the matrix [S, L] that averages over the views of each level."""
        at = torch.tensor(self.strengths)[:, None] == torch.tensor(self.levels)
        return at.double() / at.sum(0)

    def draw(self, B: int, rng: torch.Generator) -> "Drawn":
        """Draw all elements of a finite group but the identity, or noise of rising strength."""
        if isinstance(self.transform, FiniteGroup):
            return Drawn([(self.transform, range(1, self.transform.order))])
        parts = list(self.transform.parts) if isinstance(self.transform, Compose) else [self.transform]
        t = torch.linspace(0, 1, self.S // 2 + 1)[1:].repeat_interleave(2)
        return Drawn([(part, _draw(part, B, t, rng)) for part in parts])  # type: ignore[arg-type, misc]


def _draw(part: Transform, B: int, t: Tensor, rng: torch.Generator) -> Any:
    """Draw elements of a finite part uniformly, and noise of strength t for any other."""
    if isinstance(part, FiniteGroup):
        return torch.randint(part.order, (len(t),), generator=rng, device=rng.device).tolist()
    u = rows(lambda B: torch.rand(B, len(t) // 2, part.noise_dim, generator=rng, device=rng.device), B, rng) * 2 - 1
    u = u / u.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(u.dtype).tiny)
    return torch.stack([u, -u], dim=2).flatten(1, 2) * t.to(u)[:, None]


def orbit_of(transform: Transform, shape: Sequence[int], levels: int = 8) -> Orbit:
    if levels < 1:
        raise InputError(f"levels must be at least 1; got {levels}. The default is 8.")
    transform = deepcopy(transform).requires_grad_(False)
    if isinstance(transform, FiniteGroup):
        return Orbit(transform, *_elements(transform, shape))
    finite = {n for m in transform.modules() if isinstance(m, FiniteGroup) for n in m.names}
    if not transform.eta.any():  # no widths were set
        sampled = [spec for spec in transform.specs if spec.name not in finite]
        etas = [math.pi if s.upper == math.pi else 1.0 if s.name in ("grey", "blur") else 0.25 for s in sampled]
        transform.set_widths({s.name: s.unit.to_person(eta) for s, eta in zip(sampled, etas, strict=True)})
    if finite == set(transform.names):
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
    sides = [min(step, group.n - step) * (side // group.n) for step, side in zip(steps, shape[-2:], strict=True)]
    return round(math.hypot(*sides), 4)


@dataclass(frozen=True, eq=False)
class Drawn:
    """One transformation for every input and view, differentiable in the inputs [B, S, ...], repeated per view."""

    parts: list[tuple[Transform, Any]]  # in sequence; each with its noise [B, S, K], or a finite group's elements [S]

    def apply(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        for part, how in self.parts:
            x = _act(part, how, x)
        return x

    def round_trip(self, x: Float[Tensor, "B S ..."]) -> Float[Tensor, "B S ..."]:
        """Transform and invert: what interpolation, padding and cropping alone do to the inputs.

        The opposite noise inverts a transformation, since exp(-A) exp(A) = 1; one-way widths stay out.
        """
        there: list[tuple[Transform, Any]] = []
        back: list[tuple[Transform, Any]] = []
        for part, how in self.parts:
            if isinstance(part, FiniteGroup):
                there.append((part, how))
                back.append((part, [part.inverse_of(j) for j in how]))
            else:
                how = how * how.new_tensor([name not in part.one_way for name in part.names])
                there.append((part, how))
                back.append((part, -how))
        return Drawn(there + back[::-1]).apply(x)


def _act(part: Transform, how: Any, x: Tensor) -> Tensor:
    if isinstance(part, FiniteGroup):
        return torch.stack([part.element(view, j) for view, j in zip(x.unbind(1), how, strict=True)], dim=1)
    eps = how.to(x).flatten(0, 1)[:, None]
    return part.act(x.flatten(0, 1), eps).squeeze(1).unflatten(0, x.shape[:2])
