"""A network on standardised inputs: each channel with mean 0 and variance 1 over the training data.

Transformations act on the inputs as they are, so that a colour that is filled in keeps its meaning. Images go on with
their channels last in memory: convolutions and pooling take two thirds of the time.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.data.rows import Rows, chunks


class Standardised(nn.Module):
    """net((x - input_mean) / input_scale)."""

    input_mean: Tensor
    input_scale: Tensor

    def __init__(self, net: nn.Module, mean: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("input_mean", mean)
        self.register_buffer("input_scale", scale)

    @classmethod
    def by(cls, net: nn.Module, x: Float[Tensor | Rows, "N C ..."]) -> "Standardised":
        """Return the network with mean and scale of these inputs; a constant channel keeps its scale."""
        axes, n = [axis for axis in range(x.ndim) if axis != 1], 0
        mean = variance = torch.zeros((), dtype=torch.float64)
        for part in chunks(x):
            own_variance, own_mean = torch.var_mean(part.double(), axes, correction=0, keepdim=True)
            share, n = len(part) / (n + len(part)), n + len(part)
            between = share * (1 - share) * (own_mean - mean) ** 2
            variance = (1 - share) * variance + share * own_variance + between
            mean = (1 - share) * mean + share * own_mean
        return cls(net, mean[0].float(), torch.where(variance[0] > 0, variance[0].sqrt(), 1.0).float())

    @classmethod
    def empty(cls, net: nn.Module, channels: int, ndim: int) -> "Standardised":
        """Return the network with mean 0 and scale 1, to load a saved one into."""
        shape = (channels, *[1] * (ndim - 1))
        return cls(net, torch.zeros(shape), torch.ones(shape))

    def forward(self, x: Float[Tensor, "B C ..."]) -> Float[Tensor, "B K"]:
        x = (x - self.input_mean) / self.input_scale
        return self.net(channels_last(x) if x.ndim == 4 else x)


def channels_last(x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
    """Return the same images with their channels last in memory; of a single channel too, where the strides decide."""
    return x.movedim(1, -1).flatten(1).unflatten(1, (*x.shape[2:], x.shape[1])).movedim(-1, 1)
