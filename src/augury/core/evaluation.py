"""Evaluation mode for a while; in `core` because `models`, `curvature` and `training` need it."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def in_evaluation(net: nn.Module) -> Iterator[None]:
    """Put every module in evaluation mode for the block, and each back into its own mode afterwards."""
    modes = {module: module.training for module in net.modules()}
    try:
        net.eval()
        yield
    finally:
        for module, training in modes.items():
            module.training = training
