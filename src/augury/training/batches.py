"""The training set in mini-batches, and the random streams of a run, all from its one seed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.rng import Stream, generator, spawn
from augury.core.world import ALONE, Part, World
from augury.data.rows import Rows

Parts = Iterator[tuple[Tensor, Tensor, Part | None]]


@dataclass(frozen=True, eq=False)
class Batches:
    """The training set; a call iterates over it once, in order or shuffled by a generator."""

    x: Float[Tensor | Rows, "N ..."]  # inputs, in memory or on disk
    y: Shaped[Tensor, "N ..."]
    size: int  # inputs in a batch; the last one of a pass may hold fewer
    device: torch.device  # where the batches go
    world: World = ALONE  # the processes that share them

    @property
    def N(self) -> int:
        return len(self.x)

    def __len__(self) -> int:
        return -(-self.N // self.size)

    def __call__(self, rng: torch.Generator | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        for x, y, _ in self.parts(rng, ALONE):
            yield x, y

    def parts(self, rng: torch.Generator | None = None, world: World | None = None) -> Parts:
        """Give this process's part of every batch, and which one it is; None for a whole batch."""
        order = torch.arange(self.N) if rng is None else torch.randperm(self.N, generator=rng)
        for index in order.split(self.size):
            part = (world or self.world).part(len(index))
            index = index if part is None else index[part.rows]
            yield self.x[index].to(self.device), self.y[index].to(self.device), part


STREAMS = ("network", "shuffle", "views")  # weights at the start; the order of the data; the noise of the views


def streams(seed: int) -> dict[str, Stream]:
    """Return an independent generator for each use."""
    parent = generator(seed)
    return {name: spawn(parent) for name in STREAMS}


@contextmanager
def own_global_stream(seed: int) -> Iterator[None]:
    """Seed torch's global generator for the block and put it back afterwards.

    Augury never draws from it, but a user's network may (dropout), and should do so reproducibly.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
