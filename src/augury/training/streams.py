"""The random streams of a run, all from its one seed."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from augury.core.rng import generator, spawn

STREAMS = ("network", "shuffle", "views")
"""Weights at the start; the order of the data; the noise of the views."""


def streams(seed: int) -> dict[str, torch.Generator]:
    """Return one generator for each use, none of which disturbs another."""
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
