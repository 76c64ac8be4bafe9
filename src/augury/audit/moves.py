"""What is done to the views of a batch, forth and back, differentiable in the inputs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from augury.transforms.base import Transform
from augury.transforms.finite_group import FiniteGroup


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
        """Transform and undo it: what interpolation, padding and cropping alone do to the inputs."""
        there = self.undoable()
        return there.back(there.forth(x))


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
