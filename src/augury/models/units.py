"""Outputs in the units of the data: a network of standardised targets z = (y - mean) / scale gives mean + scale * z."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.models.orbit import OrbitAverage
from augury.models.shallow import Shallow


class InUnits(nn.Module):
    """A network with its outputs scaled; the scaling is part of its state."""

    mean: Tensor
    scale: Tensor

    def __init__(self, net: nn.Module, mean: Sequence[float], scale: Sequence[float]) -> None:
        super().__init__()
        self.net = net
        like = next(net.parameters())
        self.register_buffer("mean", torch.tensor(mean).to(like))
        self.register_buffer("scale", torch.tensor(scale).to(like))

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B D"]:
        return self.mean + self.scale * self.net(x)


def in_units(model: nn.Module, mean: Sequence[float], scale: Sequence[float]) -> nn.Module:
    """Return a trained model with outputs in the units of its data; an orbit average stays one.

    A mean over views of scaled outputs is the scaled mean: its network is scaled, or the last layer of a shallow one.
    """
    if not len(scale):
        return model
    if isinstance(model, OrbitAverage) and isinstance(model.net, Shallow):
        model.net.output = InUnits(model.net.output, mean, scale)  # type: ignore[assignment]
    elif isinstance(model, OrbitAverage):
        model.net = InUnits(model.net, mean, scale)
    else:
        return InUnits(model, mean, scale)
    return model
