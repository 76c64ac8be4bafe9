"""The training set in mini-batches, over and over."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Batches:
    """Call it to go over the data once: in a fixed order, or shuffled by a generator."""

    x: Float[Tensor, "N ..."]
    """Inputs."""
    y: Shaped[Tensor, "N ..."]
    """Targets."""
    size: int
    """Inputs in a batch; the last one of a pass may hold fewer."""
    device: torch.device
    """Where the batches go."""

    @property
    def N(self) -> int:
        """How many inputs there are."""
        return len(self.x)

    def __len__(self) -> int:
        return -(-self.N // self.size)

    def __call__(self, rng: torch.Generator | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Go over the data once."""
        order = torch.arange(self.N) if rng is None else torch.randperm(self.N, generator=rng)
        for index in order.split(self.size):
            yield self.x[index].to(self.device), self.y[index].to(self.device)
