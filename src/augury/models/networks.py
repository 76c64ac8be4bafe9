"""The tables of networks and encoders by name: `build("cnn", (1, 28, 28), 10, rng)` makes one.

torch is imported when a network is built, so that the command line can list them at once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from augury.core.errors import InputError, choose

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Network:
    """One row of the table."""

    description: str  # what it is, and where it comes from
    takes: str  # the inputs it takes, in words
    fits: Callable[[Shape], bool]  # whether it takes inputs of this shape
    make: Callable[[Shape, int, "torch.Generator"], "torch.nn.Module"]
    """Builds it from the shape of an input, the number of outputs and a generator."""
    side: int = 32  # longer side of images that it learns in minutes on two cores; larger image files are reduced to it


def _any_shape(description: str, make: Callable[..., "torch.nn.Module"]) -> Network:
    return Network(description, "inputs of any shape", lambda shape: len(shape) > 0, make)


def _images(description: str, least: int, make: Callable[..., "torch.nn.Module"], side: int = 32) -> Network:
    takes = f"images [C, H, W] of at least {least} x {least} pixels"
    return Network(description, takes, lambda shape: len(shape) == 3 and min(shape[1:]) >= least, make, side)


def _small() -> Any:
    return import_module("augury.models.small")


def _resnet(depth: int, width: int) -> Network:
    def make(shape: Shape, n: int, rng: "torch.Generator") -> "torch.nn.Module":
        return import_module("augury.models.fixup").FixupResNet(shape[0], n, rng, depth, width)

    side = 64 if width <= 8 else 48
    return _images(f"Fixup ResNet of depth {depth}, width {width} (paper A)", 4, make, side)


def _rff(units: int) -> Callable[..., "torch.nn.Module"]:
    def make(shape: Shape, n: int, rng: "torch.Generator") -> "torch.nn.Module":
        from augury.models.shallow import Rff, usual_sigma

        return Rff(shape, n, rng, units, usual_sigma(shape))

    return make


def _relu(units: int) -> Callable[..., "torch.nn.Module"]:
    return lambda shape, n, rng: import_module("augury.models.shallow").Relu(shape, n, rng, units)


NETWORKS: dict[str, Network] = {
    "mlp": _any_shape(
        "MLP with 1000 tanh units (paper A)", lambda shape, n, rng: _small().MLP([math.prod(shape), 1000, n], rng)
    ),
    "mlp5": _any_shape(
        "MLP of five layers, 128 ReLU units in each hidden one (paper D)",
        lambda shape, n, rng: _small().MLP([math.prod(shape), *[128] * 4, n], rng, "relu"),
    ),
    "toy_mlp": Network(
        "MLP with 50 tanh units for toy data (papers A and B)",
        "vectors [D]",
        lambda shape: len(shape) == 1,
        lambda shape, n, rng: _small().MLP([*shape, 50, n], rng),
    ),
    "cnn": _images(
        "CNN of three convolutions and two linear layers, tanh (paper A)",
        12,
        lambda shape, n, rng: _small().CNN(shape, n, rng),
        side=64,
    ),
    "resnet_8_8": _resnet(8, 8),
    "resnet_8_16": _resnet(8, 16),
    "wide_resnet_16_4": _images(
        "Fixup Wide ResNet of depth 16, widened by 4 (paper A)",
        4,
        lambda shape, n, rng: import_module("augury.models.fixup").FixupWideResNet(shape[0], n, rng, 16, 4),
    ),
    "signal_cnn": Network(
        "1-d CNN of three convolutions, ReLU",
        "signals [C, T] of at least 8 steps",
        lambda shape: len(shape) == 2 and shape[1] >= 8,
        lambda shape, n, rng: _small().SignalCNN(shape, n, rng),
    ),
    "outline_cnn": Network(
        "1-d CNN of five convolutions, ReLU, for closed outlines",
        "signals [C, T] of at least 8 steps",
        lambda shape: len(shape) == 2 and shape[1] >= 8,
        lambda shape, n, rng: _small().SignalCNN(shape, n, rng, _small().OUTLINES),
    ),
    "pointnet": Network(
        "small PointNet: a shared MLP, the maximum over points",
        "point clouds [P, 3]",
        lambda shape: len(shape) == 2 and shape[1] == 3,
        lambda shape, n, rng: _small().PointNet(n, rng),
    ),
    "rff": _any_shape("1,024 random Fourier features, which stay fixed, and a linear layer (paper B)", _rff(1024)),
    "relu": _any_shape("one layer of 1,024 ReLU units (paper B)", _relu(1024)),
    "rff_256": _any_shape("rff with 256 features", _rff(256)),
    "relu_256": _any_shape("relu with 256 units", _relu(256)),
}


def that_take(input_shape: Sequence[int]) -> list[str]:
    return [name for name, row in NETWORKS.items() if row.fits(tuple(input_shape))]


def build(name: str, input_shape: Sequence[int], n_outputs: int, rng: "torch.Generator") -> "torch.nn.Module":
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


@dataclass(frozen=True)
class Encoder:
    """A feature extractor whose weights a `HyperExtractor` generates."""

    description: str
    d_h: int  # default number of hidden units of its generator
    smallest: int  # smallest side in pixels
    make: Callable[[Shape, "torch.Generator"], "torch.nn.Module"]


def _resnet_encoder(width: int, blocks: int) -> Callable[..., "torch.nn.Module"]:
    return lambda shape, rng: import_module("augury.models.encoders").ResNet(shape, rng, width, blocks)


ENCODERS: dict[str, Encoder] = {
    "conv16": Encoder(
        "one convolution with 16 filters (paper C)",
        40,
        5,
        lambda shape, rng: import_module("augury.models.encoders").SingleConvolution(shape[0], rng),
    ),
    "resnet10_8": Encoder("ResNet-10, 8 to 64 channels", 64, 8, _resnet_encoder(8, 1)),
    "resnet10_16": Encoder("ResNet-10, 16 to 128 channels", 64, 8, _resnet_encoder(16, 1)),
    "resnet18_16": Encoder("ResNet-18, 16 to 128 channels", 64, 8, _resnet_encoder(16, 2)),
    "resnet18": Encoder("ResNet-18, 64 to 512 channels (paper C)", 64, 8, _resnet_encoder(64, 2)),
}
# The generator of resnet18 holds 64 numbers for each of 11 million weights: 2.9 GB, 8.6 more under Adam; the narrower
# ones can be trained on two cores.


def build_encoder(name: str, input_shape: Sequence[int], rng: "torch.Generator") -> "torch.nn.Module":
    row = ENCODERS[choose("encoder", name, ENCODERS)]
    if len(input_shape) != 3 or min(input_shape[1:]) < row.smallest:
        raise InputError(
            f"encoder '{name}' takes images [C, H, W] of at least {row.smallest} x {row.smallest} pixels; "
            f"got inputs of shape {list(input_shape)}."
        )
    return row.make(tuple(input_shape), rng)
