"""A network in evaluation mode for a while: no dropout, running statistics where that was asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from augury.core.errors import InputError, choose

BATCHNORM = ("refuse", "evaluate")


@contextmanager
def evaluating(net: nn.Module, batchnorm: str = "refuse") -> Iterator[None]:
    """Put the network in evaluation mode, and back as it was."""
    choose("batchnorm", batchnorm, BATCHNORM)
    coupled = [
        n for n, m in net.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training
    ]
    if coupled and batchnorm == "refuse":
        raise InputError(
            f"layer '{coupled[0]}' (BatchNorm) couples the samples of a batch, so the evidence is not a sum over "
            f"data. Say batchnorm='evaluate' to use its running statistics, or exchange it for GroupNorm: "
            f"augury.swap_batchnorm(net)."
        )
    modes = {module: module.training for module in net.modules()}
    net.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
