"""Paper A's convolutional network, in the manner of LeNet.

    conv 5 C->6, tanh, pool 2, conv k 6->16, tanh, pool 2, conv 5 16->120, tanh, linear 84, tanh, linear

The second kernel k is 3 below 32 pixels and 5 from there on, so that 28 and 32 pixels both arrive at the last
convolution as a 5 x 5 map, which it turns into a single position. The rule for every other size keeps that: a
larger map is averaged down to 5 x 5, a smaller one gets a last kernel of its own size. So positions stay told
apart (nothing is made invariant that the data should decide), and the weights do not grow in number with the
image. Max pooling, no padding.
"""

from collections import OrderedDict

import torch
from torch import nn

from augury.core.errors import InputError
from augury.models.layers import seeded

LAST_MAP = 5
"""Side of the largest map that the last convolution sees."""


class CNN(nn.Sequential):
    """Paper A's CNN: 60,170 weights for 28 x 28 grey images and ten classes."""

    def __init__(self, input_shape: tuple[int, int, int], n_outputs: int, rng: torch.Generator) -> None:
        channels, *sides = input_shape
        k = 3 if min(sides) < 32 else 5
        left = [((n - 4) // 2 - (k - 1)) // 2 for n in sides]
        if min(left) < 1:
            raise InputError(
                f"CNN needs images of at least 12 x 12 pixels; got {sides[0]} x {sides[1]}. Enlarge them."
            )
        last = [min(n, LAST_MAP) for n in left]
        average = [] if left == last else [("average", nn.AdaptiveAvgPool2d(tuple(last)))]
        layers: list[tuple[str, nn.Module]] = [
            ("conv1", seeded(nn.Conv2d, channels, 6, 5, rng=rng)),
            ("tanh1", nn.Tanh()),
            ("pool1", nn.MaxPool2d(2)),
            ("conv2", seeded(nn.Conv2d, 6, 16, k, rng=rng)),
            ("tanh2", nn.Tanh()),
            ("pool2", nn.MaxPool2d(2)),
            *average,
            ("conv3", seeded(nn.Conv2d, 16, 120, tuple(last), rng=rng)),
            ("tanh3", nn.Tanh()),
            ("flatten", nn.Flatten()),
            ("linear1", seeded(nn.Linear, 120, 84, rng=rng)),
            ("tanh4", nn.Tanh()),
            ("linear2", seeded(nn.Linear, 84, n_outputs, rng=rng)),
        ]
        super().__init__(OrderedDict(layers))
