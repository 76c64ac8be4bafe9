"""The scalar bias and scale of Fixup networks; in `core` because both `models` and `curvature` need them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class ScalarBias(nn.Module):
    """z = x + b, with b a single number that starts at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return x + self.bias


class ScalarScale(nn.Module):
    """z = x * s, with s a single number that starts at 1."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return x * self.scale
