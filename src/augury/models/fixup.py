"""Residual networks without normalisation, as paper A uses them: Fixup (Zhang, Dauphin and Ma, 2019).

Batch normalisation couples the samples of a batch; then no Jacobian belongs to one input. Fixup replaces it:

- the last convolution of every residual branch and the last linear layer start at 0: the network begins as
  its shortcuts, at any depth;
- the first convolution of a branch starts at He's scale times L^(-1/2), L branches in all (for m layers in a
  branch L^(-1 / (2m - 2)); here m = 2), so that a step moves the outputs no further in deeper networks;
- a learnable scalar is added before every convolution, linear layer and activation (not before the first
  convolution, which sees the image), and one multiplies every branch.

So each branch has four biases and one scale, and the network two more biases. A ResNet of depth 6n + 2 whose
shortcuts have no weights counts 18,995 (width 8) and 74,827 (width 16) for CIFAR-10; Wide ResNet 16-4 (depth
6n + 4, activation first, 1 x 1 convolutions where the shape changes) counts 2,745,306: paper A's figures.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.core.scalars import ScalarBias, ScalarScale
from augury.models.layers import bare, he_normal_


def conv3(n_in: int, n_out: int, stride: int = 1) -> nn.Conv2d:
    return bare(nn.Conv2d, n_in, n_out, 3, stride=stride, padding=1, bias=False)


class Branch(nn.Module, ABC):
    """The residual branch of both blocks: two convolutions, four scalar biases, one scale; zero at the start."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.n_in, self.n_out, self.stride = n_in, n_out, stride
        self.bias1, self.bias2, self.bias3, self.bias4 = (ScalarBias() for _ in range(4))
        self.scale = ScalarScale()
        self.conv1, self.conv2 = conv3(n_in, n_out, stride), conv3(n_out, n_out)

    def initialise(self, rng: torch.Generator, branches: int) -> None:
        """Initialise the weights by Fixup's rule for a network of L branches."""
        he_normal_(self.conv1.weight, rng, branches**-0.5)
        nn.init.zeros_(self.conv2.weight)

    @abstractmethod
    def branch(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        """Return the term added to the shortcut."""


class FixupBlock(Branch):
    """relu(shortcut(x) + branch(x)); the shortcut drops every other pixel and pads channels with zeros."""

    def branch(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        h = torch.relu(self.bias2(self.conv1(self.bias1(x))))
        return self.bias4(self.scale(self.conv2(self.bias3(h))))

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        shortcut = x[:, :, :: self.stride, :: self.stride]
        if self.n_out > self.n_in:
            shortcut = F.pad(shortcut, (0, 0, 0, 0, 0, self.n_out - self.n_in))
        return torch.relu(shortcut + self.branch(x))


class WideFixupBlock(Branch):
    """shortcut(x) + branch(x), activation first; the shortcut is a 1 x 1 convolution where the shape changes."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__(n_in, n_out, stride)
        same = n_in == n_out and stride == 1
        self.shortcut = None if same else bare(nn.Conv2d, n_in, n_out, 1, stride=stride, bias=False)

    def initialise(self, rng: torch.Generator, branches: int) -> None:
        super().initialise(rng, branches)
        if self.shortcut is not None:
            he_normal_(self.shortcut.weight, rng)

    def branch(self, a: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        h = torch.relu(self.bias3(self.conv1(self.bias2(a))))
        return self.scale(self.conv2(self.bias4(h)))

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        a = torch.relu(self.bias1(x))
        return (x if self.shortcut is None else self.shortcut(a)) + self.branch(a)


def _blocks_per_stage(depth: int, rest: int) -> int:
    blocks, over = divmod(depth - rest, 6)
    if over or blocks < 1:
        raise InputError(f"depth must be 6n + {rest} with n at least 1; got {depth}. Take {6 + rest} or {12 + rest}.")
    return blocks


class _Stages(nn.Module):
    """Stem, three stages of blocks (each later one at half the side), mean over positions, linear layer."""

    block: type[Branch]

    def __init__(self, channels: int, n_outputs: int, rng: torch.Generator, widths: Sequence[int], blocks: int) -> None:
        super().__init__()
        self.stem = conv3(channels, widths[0])
        stages: list[nn.Module] = []
        for stage, (n_in, n_out) in enumerate(pairwise(widths)):
            stages.append(self.block(n_in, n_out, 1 if stage == 0 else 2))
            stages += [self.block(n_out, n_out, 1) for _ in range(blocks - 1)]
        self.stages = nn.Sequential(*stages)
        self.bias1, self.bias2 = ScalarBias(), ScalarBias()
        self.linear = bare(nn.Linear, widths[-1], n_outputs)
        he_normal_(self.stem.weight, rng)
        branches = [block for block in self.stages if isinstance(block, Branch)]
        for branch in branches:
            branch.initialise(rng, len(branches))
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)


class FixupResNet(_Stages):
    """A Fixup ResNet of depth 6n + 2: three stages of n blocks with w, 2w and 4w channels."""

    block = FixupBlock

    def __init__(self, channels: int, n_outputs: int, rng: torch.Generator, depth: int = 8, width: int = 8) -> None:
        widths = (width, width, 2 * width, 4 * width)
        super().__init__(channels, n_outputs, rng, widths, _blocks_per_stage(depth, 2))

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D"]:
        h = self.stages(torch.relu(self.bias1(self.stem(x))))
        return self.linear(self.bias2(h.mean((2, 3))))


class FixupWideResNet(_Stages):
    """A Fixup Wide ResNet of depth 6n + 4: stem of 16 channels, stages of 16k, 32k and 64k."""

    block = WideFixupBlock

    def __init__(self, channels: int, n_outputs: int, rng: torch.Generator, depth: int = 16, widen: int = 4) -> None:
        widths = (16, 16 * widen, 32 * widen, 64 * widen)
        super().__init__(channels, n_outputs, rng, widths, _blocks_per_stage(depth, 4))

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D"]:
        h = torch.relu(self.bias1(self.stages(self.stem(x))))
        return self.linear(self.bias2(h.mean((2, 3))))
