"""Encoders for a `HyperExtractor`: paper C's single convolution, and residual networks (He et al., 2016).

Below 96 pixels the stem of a ResNet is a 3 x 3 convolution of stride 1 without pooling, as is usual for small images.
The initial weights of convolutions do not matter in an extractor, which generates them.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.models.layers import bare, he_normal_

LARGE = 96  # side in pixels from which a ResNet has its large stem


def conv(n_in: int, n_out: int, kernel: int, rng: torch.Generator, stride: int = 1, padding: int = 0) -> nn.Conv2d:
    """Return a convolution without bias, initialised by He's rule."""
    layer = bare(nn.Conv2d, n_in, n_out, kernel, stride=stride, padding=padding, bias=False)
    he_normal_(layer.weight, rng)
    return layer


class SingleConvolution(nn.Sequential):
    """Paper C's extractor of the synthetic experiments."""

    def __init__(self, channels: int, rng: torch.Generator, filters: int = 16) -> None:
        super().__init__(conv(channels, filters, 5, rng, stride=2), nn.BatchNorm2d(filters), nn.ReLU(), nn.Flatten())


class Block(nn.Module):
    """relu(shortcut(x) + bn(conv(relu(bn(conv(x)))))): the basic block of He et al. (2016)."""

    def __init__(self, n_in: int, n_out: int, stride: int, rng: torch.Generator) -> None:
        super().__init__()
        self.conv1, self.norm1 = conv(n_in, n_out, 3, rng, stride, 1), nn.BatchNorm2d(n_out)
        self.conv2, self.norm2 = conv(n_out, n_out, 3, rng, 1, 1), nn.BatchNorm2d(n_out)
        same = n_in == n_out and stride == 1
        self.shortcut = (
            nn.Identity() if same else nn.Sequential(conv(n_in, n_out, 1, rng, stride), nn.BatchNorm2d(n_out))
        )

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.shortcut(x) + self.norm2(self.conv2(h)))


class ResNet(nn.Sequential):
    """Stem, four stages that double the channels and halve the side, mean over positions."""

    def __init__(self, input_shape: tuple[int, ...], rng: torch.Generator, width: int = 64, blocks: int = 2) -> None:
        channels, *sides = input_shape
        if min(sides) >= LARGE:
            stem = [conv(channels, width, 7, rng, 2, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        else:
            stem = [conv(channels, width, 3, rng, 1, 1), nn.BatchNorm2d(width), nn.ReLU()]
        stages: list[nn.Module] = []
        n_in = width
        for stage in range(4):
            n_out = width * 2**stage
            for block in range(blocks):
                stages.append(Block(n_in, n_out, 2 if stage and not block else 1, rng))
                n_in = n_out
        super().__init__(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten())
