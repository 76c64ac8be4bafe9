"""Small networks: MLP and CNN of paper A, and our own for signals and point clouds."""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError, choose
from augury.models.layers import seeded

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


class MLP(nn.Sequential):
    """Linear layers with an activation between each two; inputs of any shape are flattened first.

    Paper A: 784-1000-10 with tanh, toy data 2-50-2; paper D: five layers with ReLU.
    """

    def __init__(self, sizes: Sequence[int], rng: torch.Generator, activation: str = "tanh") -> None:
        act = ACTIVATIONS[choose("activation", activation, ACTIVATIONS)]
        if len(sizes) < 2 or min(sizes) < 1:
            raise InputError(
                f"sizes must name an input and an output at least, each of 1 unit or more; got {list(sizes)}."
                f" Paper A's network is [784, 1000, 10]."
            )
        layers: list[tuple[str, nn.Module]] = [("flatten", nn.Flatten())]
        for l, (n_in, n_out) in enumerate(pairwise(sizes), start=1):
            layers += [(f"linear{l}", seeded(nn.Linear, n_in, n_out, rng=rng)), (f"{activation}{l}", act())]
        super().__init__(OrderedDict(layers[:-1]))  # no activation after the last layer


LAST_MAP = 5  # side of the largest map that the last convolution sees


class CNN(nn.Sequential):
    """Paper A's CNN, similar to LeNet: 60,170 weights for 28 x 28 grey images and ten classes.

        conv 5 C->6, pool 2, tanh, conv k 6->16, pool 2, tanh, conv 5 16->120, tanh, linear 84, tanh, linear

    The maximum commutes with tanh, which grows: pooling first is the same function, with a quarter of the tanh.

    The second kernel k is 3 below 32 pixels and 5 from there on, so that 28 and 32 pixels both arrive at the last
    convolution as a 5 x 5 map, which it turns into a single position. The rule for every other size keeps that: a
    larger map is averaged down to 5 x 5, a smaller one gets a last kernel of its own size. So positions remain
    distinct (no invariance is built in that the data should decide), and the number of weights does not grow with
    the image. Max pooling, no padding.
    """

    def __init__(self, input_shape: tuple[int, int, int], n_outputs: int, rng: torch.Generator) -> None:
        channels, *sides = input_shape
        k = 3 if min(sides) < 32 else 5
        left = [((n - 4) // 2 - (k - 1)) // 2 for n in sides]
        if min(left) < 1:
            raise InputError(f"CNN needs images of at least 12 x 12 pixels; got {sides[0]} x {sides[1]}. Enlarge them.")
        last = [min(n, LAST_MAP) for n in left]
        average = [] if left == last else [("average", nn.AdaptiveAvgPool2d(tuple(last)))]
        layers: list[tuple[str, nn.Module]] = [
            ("conv1", seeded(nn.Conv2d, channels, 6, 5, rng=rng)),
            ("pool1", nn.MaxPool2d(2)),
            ("tanh1", nn.Tanh()),
            ("conv2", seeded(nn.Conv2d, 6, 16, k, rng=rng)),
            ("pool2", nn.MaxPool2d(2)),
            ("tanh2", nn.Tanh()),
            *average,
            ("conv3", seeded(nn.Conv2d, 16, 120, tuple(last), rng=rng)),
            ("tanh3", nn.Tanh()),
            ("flatten", nn.Flatten()),
            ("linear1", seeded(nn.Linear, 120, 84, rng=rng)),
            ("tanh4", nn.Tanh()),
            ("linear2", seeded(nn.Linear, 84, n_outputs, rng=rng)),
        ]
        super().__init__(OrderedDict(layers))


SEGMENTS = 8  # largest number of positions in time that the linear layer sees
SIGNALS, OUTLINES = ((16, 7), (32, 5), (64, 3)), ((16, 7), (32, 5), (64, 5), (64, 5), (64, 3))
"""Channels and kernel of every convolution. The last one sees 26 samples of a signal, and 110 of a closed outline,
whose shape is told by more than its small parts."""


class SignalCNN(nn.Sequential):
    """A 1-d CNN for signals [C, T]: convolutions, a maximum of two between each two of them, then a linear layer.

    The time axis is averaged down to at most eight segments, not to one: a mean over all of time would make the
    network nearly invariant to shifts, which is for the data to decide, also where they are closed outlines.
    """

    def __init__(
        self,
        input_shape: tuple[int, int],
        n_outputs: int,
        rng: torch.Generator,
        convolutions: Sequence[tuple[int, int]] = SIGNALS,
    ) -> None:
        channels, length = input_shape
        if length < 8:
            raise InputError(f"SignalCNN needs signals of at least 8 steps; got {length}. Are the axes [C, T]?")
        pools = min(len(convolutions), length.bit_length() - 1) - 1
        segments = min(length // 2**pools, SEGMENTS)
        layers: list[tuple[str, nn.Module]] = []
        for l, (width, kernel) in enumerate(convolutions, start=1):
            layers.append((f"conv{l}", seeded(nn.Conv1d, channels, width, kernel, padding=kernel // 2, rng=rng)))
            layers += [(f"pool{l}", nn.MaxPool1d(2))] * (l <= pools) + [(f"relu{l}", nn.ReLU())]
            channels = width
        layers += [("average", nn.AdaptiveAvgPool1d(segments)), ("flatten", nn.Flatten())]
        layers.append(("linear", seeded(nn.Linear, channels * segments, n_outputs, rng=rng)))
        super().__init__(OrderedDict(layers))


class PointNet(nn.Module):
    """Shared layers 3-64-64-128 with ReLU, the maximum over the points, then 128-64-outputs.

    Neither the maximum nor its gradient (`amax` shares that of a tie evenly) depends on the order of the points.
    """

    def __init__(self, n_outputs: int, rng: torch.Generator) -> None:
        super().__init__()
        self.shared = nn.Sequential(
            seeded(nn.Linear, 3, 64, rng=rng),
            nn.ReLU(),
            seeded(nn.Linear, 64, 64, rng=rng),
            nn.ReLU(),
            seeded(nn.Linear, 64, 128, rng=rng),
            nn.ReLU(),
        )
        self.head = nn.Sequential(
            seeded(nn.Linear, 128, 64, rng=rng), nn.ReLU(), seeded(nn.Linear, 64, n_outputs, rng=rng)
        )

    def forward(self, x: Float[Tensor, "B P 3"]) -> Float[Tensor, "B D"]:
        return self.head(self.shared(x).amax(1))
