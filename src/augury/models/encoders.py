"""Encoders for a `HyperExtractor`, by name: paper C's single convolution, its ResNet-18, and narrower ones.

    conv16      conv 5 C->16, stride 2, BatchNorm, ReLU, flatten: 2,304 features for 28 x 28
    resnet18    He et al. (2016): stem, four stages of two blocks, mean over positions: 512 features
                its generator holds 64 numbers for each of 11 million weights: 2.9 GB, and 8.6 GB more under Adam
    resnet10_*  one block per stage, narrower: what two cores can train

Nothing here loads torch until an encoder is built, so that the command line can list them at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from augury.core.errors import InputError, choose

if TYPE_CHECKING:
    import torch

Shape = tuple[int, int, int]
Make = Callable[[Shape, "torch.Generator"], "torch.nn.Module"]


def _shallow(shape: Shape, rng: "torch.Generator") -> "torch.nn.Module":
    from augury.models.encoder_nets import Shallow

    return Shallow(shape[0], rng)


def _resnet(width: int, blocks: int) -> Make:
    def make(shape: Shape, rng: "torch.Generator") -> "torch.nn.Module":
        from augury.models.encoder_nets import ResNet

        return ResNet(shape, rng, width, blocks)

    return make


@dataclass(frozen=True)
class Encoder:
    """One row of the table."""

    description: str
    """What it is."""
    d_h: int
    """Hidden units of the generator that suits it."""
    smallest: int
    """Fewest pixels a side."""
    make: Make
    """Builds it for images of a shape."""


ENCODERS: dict[str, Encoder] = {
    "conv16": Encoder("one convolution with 16 filters (paper C)", 40, 5, _shallow),
    "resnet10_8": Encoder("ResNet-10, 8 to 64 channels", 64, 8, _resnet(8, 1)),
    "resnet10_16": Encoder("ResNet-10, 16 to 128 channels", 64, 8, _resnet(16, 1)),
    "resnet18_16": Encoder("ResNet-18, 16 to 128 channels", 64, 8, _resnet(16, 2)),
    "resnet18": Encoder("ResNet-18, 64 to 512 channels (paper C)", 64, 8, _resnet(64, 2)),
}
"""Every encoder by its name."""


def build(name: str, input_shape: Sequence[int], rng: "torch.Generator") -> "torch.nn.Module":
    """Build an encoder by its name."""
    row = ENCODERS[choose("encoder", name, ENCODERS)]
    if len(input_shape) != 3 or min(input_shape[1:]) < row.smallest:
        raise InputError(
            f"encoder '{name}' takes images [C, H, W] of at least {row.smallest} x {row.smallest} pixels; "
            f"got inputs of shape {list(input_shape)}."
        )
    channels, H, W = input_shape
    return row.make((channels, H, W), rng)
