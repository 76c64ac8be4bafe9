"""Learning rates as a function of how much of the training is done, so that there is no state to keep.

rate(t) = end + (start - end) (1 + cos(pi t)) / 2,   t from 0 to 1, set before every step (paper A)
"""

import math

import torch

from augury.core.errors import InputError


def cosine(start: float, end: float, t: float) -> float:
    """Return the rate at t."""
    return end + (start - end) * (1 + math.cos(math.pi * t)) / 2


class Cosine:
    """Lower every group of an optimiser from the rate it was made with."""

    def __init__(self, optimizer: torch.optim.Optimizer, end: float) -> None:
        if end < 0:
            raise InputError(f"the last learning rate must not be negative; got {end}.")
        self.optimizer, self.end = optimizer, end
        self.starts = [float(group["lr"]) for group in optimizer.param_groups]

    def set(self, t: float) -> None:
        """Set the rates for the next step."""
        for group, start in zip(self.optimizer.param_groups, self.starts, strict=True):
            group["lr"] = cosine(start, self.end, t)
