"""The networks by name. `build("cnn", (1, 28, 28), 10, rng)` makes one; `NETWORKS` says what there is.

Nothing here loads torch until a network is built, so that the command line can list them at once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from augury.core.errors import InputError, choose

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]
Make = Callable[[Shape, int, "torch.Generator"], "torch.nn.Module"]


@dataclass(frozen=True)
class Network:
    """One row of the table."""

    description: str
    """What it is, and where it comes from."""
    takes: str
    """The inputs it takes, in words."""
    fits: Callable[[Shape], bool]
    """Whether it takes inputs of this shape."""
    make: Make
    """Builds it for a shape that fits."""


def _mlp(hidden: Sequence[int], activation: str) -> Make:
    def make(input_shape: Shape, n_outputs: int, rng: "torch.Generator") -> "torch.nn.Module":
        from augury.models.small import MLP

        return MLP([math.prod(input_shape), *hidden, n_outputs], rng, activation)

    return make


def _cnn(input_shape: Shape, n_outputs: int, rng: "torch.Generator") -> "torch.nn.Module":
    from augury.models.small import CNN

    channels, H, W = input_shape
    return CNN((channels, H, W), n_outputs, rng)


def _resnet(depth: int, width: int) -> Make:
    def make(input_shape: Shape, n_outputs: int, rng: "torch.Generator") -> "torch.nn.Module":
        from augury.models.fixup import FixupResNet

        return FixupResNet(input_shape[0], n_outputs, rng, depth, width)

    return make


def _wide_resnet(input_shape: Shape, n_outputs: int, rng: "torch.Generator") -> "torch.nn.Module":
    from augury.models.fixup import FixupWideResNet

    return FixupWideResNet(input_shape[0], n_outputs, rng, depth=16, widen=4)


def _signal_cnn(input_shape: Shape, n_outputs: int, rng: "torch.Generator") -> "torch.nn.Module":
    from augury.models.small import SignalCNN

    channels, length = input_shape
    return SignalCNN((channels, length), n_outputs, rng)


def _pointnet(input_shape: Shape, n_outputs: int, rng: "torch.Generator") -> "torch.nn.Module":
    from augury.models.small import PointNet

    return PointNet(n_outputs, rng)


def _rff(units: int) -> Make:
    def make(input_shape: Shape, n_outputs: int, rng: "torch.Generator") -> "torch.nn.Module":
        from augury.models.shallow import Rff, usual_sigma

        return Rff(input_shape, n_outputs, rng, units, usual_sigma(input_shape))

    return make


def _relu(units: int) -> Make:
    def make(input_shape: Shape, n_outputs: int, rng: "torch.Generator") -> "torch.nn.Module":
        from augury.models.shallow import Relu

        return Relu(input_shape, n_outputs, rng, units)

    return make


def _anything(input_shape: Shape) -> bool:
    return len(input_shape) > 0


def _images(smallest: int) -> Callable[[Shape], bool]:
    return lambda input_shape: len(input_shape) == 3 and min(input_shape[1:]) >= smallest


def _resnet_row(description: str, make: Make) -> Network:
    return Network(description, "images [C, H, W] of at least 4 x 4 pixels", _images(4), make)


def _shallow_row(description: str, make: Make) -> Network:
    return Network(description, "inputs of any shape", _anything, make)


NETWORKS: dict[str, Network] = {
    "mlp": Network(
        "MLP with 1000 tanh units (paper A)", "inputs of any shape", _anything, _mlp([1000], "tanh")
    ),
    "mlp5": Network(
        "MLP of five layers, 128 ReLU units in each hidden one (paper D)",
        "inputs of any shape",
        _anything,
        _mlp([128] * 4, "relu"),
    ),
    "toy_mlp": Network(
        "MLP with 50 tanh units for toy data (papers A and B)",
        "vectors [D]",
        lambda input_shape: len(input_shape) == 1,
        _mlp([50], "tanh"),
    ),
    "cnn": Network(
        "CNN of three convolutions and two linear layers, tanh (paper A)",
        "images [C, H, W] of at least 12 x 12 pixels",
        _images(12),
        _cnn,
    ),
    "resnet_8_8": _resnet_row("Fixup ResNet of depth 8, width 8 (paper A)", _resnet(8, 8)),
    "resnet_8_16": _resnet_row("Fixup ResNet of depth 8, width 16 (paper A)", _resnet(8, 16)),
    "wide_resnet_16_4": _resnet_row("Fixup Wide ResNet of depth 16, widened by 4 (paper A)", _wide_resnet),
    "signal_cnn": Network(
        "1-d CNN of three convolutions, ReLU",
        "signals [C, T] of at least 8 steps",
        lambda input_shape: len(input_shape) == 2 and input_shape[1] >= 8,
        _signal_cnn,
    ),
    "pointnet": Network(
        "small PointNet: a shared MLP, the maximum over points",
        "point clouds [P, 3]",
        lambda input_shape: len(input_shape) == 2 and input_shape[1] == 3,
        _pointnet,
    ),
    "rff": _shallow_row(
        "1,024 random Fourier features, which stay fixed, and a linear layer (paper B)", _rff(1024)
    ),
    "relu": _shallow_row("one layer of 1,024 ReLU units (paper B)", _relu(1024)),
    "rff_256": _shallow_row("rff with 256 features", _rff(256)),
    "relu_256": _shallow_row("relu with 256 units", _relu(256)),
}
"""Every network by its name."""


def that_take(input_shape: Sequence[int]) -> list[str]:
    """Return the names of the networks that take inputs of a shape."""
    return [name for name, row in NETWORKS.items() if row.fits(tuple(input_shape))]


def build(name: str, input_shape: Sequence[int], n_outputs: int, rng: "torch.Generator") -> "torch.nn.Module":
    """Build a network by its name."""
    row, shape = NETWORKS[choose("model", name, NETWORKS)], tuple(input_shape)
    if n_outputs < 1 or min(shape, default=0) < 1:
        raise InputError(
            f"a network needs at least one input and one output; "
            f"got inputs of shape {list(shape)} and {n_outputs} outputs. Check the data."
        )
    if not row.fits(shape):
        raise InputError(
            f"model '{name}' takes {row.takes}; got inputs of shape {list(shape)}. "
            f"Models that take these: {', '.join(that_take(shape))}."
        )
    return row.make(shape, n_outputs, rng)


MakeEncoder = Callable[[Shape, "torch.Generator"], "torch.nn.Module"]


@dataclass(frozen=True)
class Encoder:
    """A feature extractor whose weights a `HyperExtractor` generates."""

    description: str
    d_h: int
    """Hidden units of the generator that suits it."""
    smallest: int
    """Fewest pixels a side."""
    make: MakeEncoder


def _conv16(shape: Shape, rng: "torch.Generator") -> "torch.nn.Module":
    from augury.models.encoders import Shallow

    return Shallow(shape[0], rng)


def _resnet_encoder(width: int, blocks: int) -> MakeEncoder:
    def make(shape: Shape, rng: "torch.Generator") -> "torch.nn.Module":
        from augury.models.encoders import ResNet

        return ResNet(shape, rng, width, blocks)

    return make


ENCODERS: dict[str, Encoder] = {
    "conv16": Encoder("one convolution with 16 filters (paper C)", 40, 5, _conv16),
    "resnet10_8": Encoder("ResNet-10, 8 to 64 channels", 64, 8, _resnet_encoder(8, 1)),
    "resnet10_16": Encoder("ResNet-10, 16 to 128 channels", 64, 8, _resnet_encoder(16, 1)),
    "resnet18_16": Encoder("ResNet-18, 16 to 128 channels", 64, 8, _resnet_encoder(16, 2)),
    "resnet18": Encoder("ResNet-18, 64 to 512 channels (paper C)", 64, 8, _resnet_encoder(64, 2)),
}
"""Encoders by name. The generator of resnet18 holds 64 numbers for each of 11 million weights: 2.9 GB, 8.6 more under
Adam; the narrower ones are what two cores can train."""


def build_encoder(name: str, input_shape: Sequence[int], rng: "torch.Generator") -> "torch.nn.Module":
    row = ENCODERS[choose("encoder", name, ENCODERS)]
    if len(input_shape) != 3 or min(input_shape[1:]) < row.smallest:
        raise InputError(
            f"encoder '{name}' takes images [C, H, W] of at least {row.smallest} x {row.smallest} pixels; "
            f"got inputs of shape {list(input_shape)}."
        )
    return row.make(tuple(input_shape), rng)
