"""The residual blocks of Fixup networks: activation last (ResNet) and activation first (Wide ResNet).

Both add `scale * conv2(...conv1(...))` to a shortcut, with a learnable scalar added before every convolution
and every activation. `conv2` starts at 0, so a block starts as its shortcut.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.scalars import ScalarBias, ScalarScale
from augury.models.layers import bare, he_normal_, zeros_


def conv3(n_in: int, n_out: int, stride: int = 1) -> nn.Conv2d:
    """Return a 3 x 3 convolution without bias, to be filled."""
    return bare(nn.Conv2d, n_in, n_out, 3, stride=stride, padding=1, bias=False)


class Branch(nn.Module, ABC):
    """What both blocks have: two convolutions, four scalar biases, one scale; zero at the start."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.n_in, self.n_out, self.stride = n_in, n_out, stride
        self.bias1, self.bias2, self.bias3, self.bias4 = (ScalarBias() for _ in range(4))
        self.scale = ScalarScale()
        self.conv1, self.conv2 = conv3(n_in, n_out, stride), conv3(n_out, n_out)

    def initialise(self, rng: torch.Generator, branches: int) -> None:
        """Fill the weights by Fixup's rule for a network of so many branches."""
        he_normal_(self.conv1.weight, rng, branches**-0.5)
        zeros_(self.conv2)

    @abstractmethod
    def branch(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        """Return what is added to the shortcut."""


class FixupBlock(Branch):
    """relu(shortcut(x) + branch(x)); the shortcut drops every other pixel and pads channels with zeros."""

    def branch(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        """Return what is added to the shortcut."""
        h = torch.relu(self.bias2(self.conv1(self.bias1(x))))
        return self.bias4(self.scale(self.conv2(self.bias3(h))))

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        """Return the block's output."""
        shortcut = x[:, :, :: self.stride, :: self.stride]
        if self.n_out > self.n_in:
            shortcut = F.pad(shortcut, (0, 0, 0, 0, 0, self.n_out - self.n_in))
        return torch.relu(shortcut + self.branch(x))


class WideFixupBlock(Branch):
    """shortcut(x) + branch(x), activation first.

    The shortcut is the identity, or a 1 x 1 convolution where the shape changes.
    """

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__(n_in, n_out, stride)
        same = n_in == n_out and stride == 1
        self.shortcut = None if same else bare(nn.Conv2d, n_in, n_out, 1, stride=stride, bias=False)

    def initialise(self, rng: torch.Generator, branches: int) -> None:
        """Fill the weights by Fixup's rule for a network of so many branches."""
        super().initialise(rng, branches)
        if self.shortcut is not None:
            he_normal_(self.shortcut.weight, rng)

    def branch(self, a: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        """Return what is added to the shortcut."""
        h = torch.relu(self.bias3(self.conv1(self.bias2(a))))
        return self.scale(self.conv2(self.bias4(h)))

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        """Return the block's output."""
        a = torch.relu(self.bias1(x))
        return (x if self.shortcut is None else self.shortcut(a)) + self.branch(a)
