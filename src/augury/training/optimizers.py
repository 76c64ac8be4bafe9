"""Optimisers of weights and widths; their rates rise to a peak and fall again, each by half a cosine."""

import math

import torch
from torch import nn

from augury.config.learn import LearnConfig
from augury.core.errors import InputError
from augury.core.scalars import ScalarBias, ScalarScale
from augury.transforms.base import Transform

LOWEST = 1 / 25  # where a warm-up begins, as a share of the peak rate
SECOND_WARM_UP = 0.1  # share of a second cycle in which the rate rises


def cosine(start: float, end: float, t: float) -> float:
    """Return start at t = 0, end at t = 1, and half a cosine between."""
    return end + (start - end) * (1 + math.cos(math.pi * t)) / 2


class Cosine:
    """The learning rate of every group: from a share of its own up to it, then down to `end`.

    In the last part of the training, a share `again`, it does so once more.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, end: float, warm_up: float = 0.0, again: float = 0.0) -> None:
        if end < 0:
            raise InputError(f"the last learning rate must not be negative; got {end}.")
        self.optimizer, self.end, self.warm_up, self.again = optimizer, end, warm_up, again
        self.peaks = [float(group["lr"]) for group in optimizer.param_groups]

    def set(self, t: float) -> None:
        """Set the rates for the next step, when a share t of the training is done."""
        first = 1 - self.again
        t, warm_up = (t / first, self.warm_up) if t < first else ((t - first) / self.again, SECOND_WARM_UP)
        for group, peak in zip(self.optimizer.param_groups, self.peaks, strict=True):
            if t < warm_up:
                group["lr"] = cosine(LOWEST * peak, peak, t / warm_up)
            else:
                group["lr"] = cosine(peak, self.end, (t - warm_up) / (1 - warm_up))


SCALAR_RATE = 0.1  # Fixup's scalars learn at a tenth of the rate (Fixup; paper A on CIFAR-10)


def for_weights(net: nn.Module, config: LearnConfig, weight_decay: float) -> torch.optim.Optimizer:
    """Return Adam or SGD for the weights that are not frozen."""
    if config.optimizer == "adam":
        weights = [p for p in net.parameters() if p.requires_grad]
        return torch.optim.Adam(weights, lr=config.rate, weight_decay=weight_decay, fused=True)
    scalars = {p for m in net.modules() if isinstance(m, ScalarBias | ScalarScale) for p in m.parameters()}
    others = [p for p in net.parameters() if p.requires_grad and p not in scalars]
    groups = [{"params": others, "lr": config.rate}]
    slow = [p for p in net.parameters() if p.requires_grad and p in scalars]
    if slow:
        groups.append({"params": slow, "lr": config.rate * SCALAR_RATE})
    return torch.optim.SGD(groups, lr=config.rate, momentum=0.9, weight_decay=weight_decay)


def clipped_step(optimizer: torch.optim.Optimizer, clip: float) -> None:
    """Take a step with a gradient of norm `clip` at most; 0 for any."""
    if clip:
        nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], clip)
    optimizer.step()


LARGEST_STEP, SMALLEST_STEP = 0.5, 1e-4
"""Bounds on a step of a width by Rprop, as eta: half a radian, and a hundredth of a degree."""


def rprop_for_widths(transform: Transform, config: LearnConfig) -> torch.optim.Optimizer:
    """Return Rprop for widths whose gradient is nearly free of noise: every width has a step of its own."""
    sizes = (SMALLEST_STEP, max(LARGEST_STEP, config.eta_rate))
    return torch.optim.Rprop(transform.parameters(), lr=config.eta_rate, step_sizes=sizes)
