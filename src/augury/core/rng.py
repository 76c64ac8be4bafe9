"""Random generators: everything random takes an explicit `torch.Generator`."""

from collections.abc import Callable

import torch
from torch import Tensor

from augury.core.errors import InputError
from augury.core.world import Part


class Stream(torch.Generator):
    """A generator that knows which rows of a batch this process takes, where there are several."""

    part: Part | None = None


def generator(seed: int, device: torch.device | str = "cpu", part: Part | None = None) -> Stream:
    made = Stream(device=device)
    made.manual_seed(seed)
    made.part = part
    return made


def spawn(rng: torch.Generator) -> Stream:
    """Return a new generator seeded by one draw from `rng`, so that two uses do not share a stream."""
    seed = int(torch.randint(2**62, (), generator=rng, device=rng.device).item())
    return generator(seed, rng.device)


def set_part(rng: torch.Generator, part: Part | None) -> None:
    """Let further draws be those of a part of a batch; None for whole ones."""
    if isinstance(rng, Stream):
        rng.part = part
    elif part is not None:
        raise InputError("several processes need the generator of augury.core.rng.generator; got a torch.Generator.")


def rows(draw: Callable[[int], Tensor], B: int, rng: torch.Generator, dim: int = 0) -> Tensor:
    """Return draws for B rows: those of the whole batch, of which this process takes its part.

    So the noise of a row depends on the seed and on its place in the batch, not on the number of processes. B may be
    several times the part: copies of the batch, one after the other.
    """
    part = getattr(rng, "part", None)
    if part is None:
        return draw(B)
    copies = range(0, part.total * (B // part.n), part.total)
    drawn = draw(len(copies) * part.total)
    return torch.cat([drawn.narrow(dim, first + part.start, part.n) for first in copies], dim)
