"""A small convolutional network for signals [C, T].

Three convolutions with ReLU, pooled twice by 2; then the time axis is averaged down to at most eight segments
and a linear layer reads them. Eight segments and not one: a mean over all of time would make the network
blind to shifts, and whether shifts matter is for the data to say.
"""

from collections import OrderedDict

import torch
from torch import nn

from augury.core.errors import InputError
from augury.models.layers import seeded

SEGMENTS = 8
"""Most positions in time that the linear layer sees."""


class SignalCNN(nn.Sequential):
    """A 1-d CNN: conv 7, conv 5 and conv 3 with 16, 32 and 64 channels, then a linear layer."""

    def __init__(self, input_shape: tuple[int, int], n_outputs: int, rng: torch.Generator) -> None:
        channels, length = input_shape
        if length < 8:
            raise InputError(
                f"SignalCNN needs signals of at least 8 steps; got {length}. Are the axes [C, T]?"
            )
        segments = min(length // 4, SEGMENTS)
        layers: list[tuple[str, nn.Module]] = [
            ("conv1", seeded(nn.Conv1d, channels, 16, 7, padding=3, rng=rng)),
            ("relu1", nn.ReLU()),
            ("pool1", nn.MaxPool1d(2)),
            ("conv2", seeded(nn.Conv1d, 16, 32, 5, padding=2, rng=rng)),
            ("relu2", nn.ReLU()),
            ("pool2", nn.MaxPool1d(2)),
            ("conv3", seeded(nn.Conv1d, 32, 64, 3, padding=1, rng=rng)),
            ("relu3", nn.ReLU()),
            ("average", nn.AdaptiveAvgPool1d(segments)),
            ("flatten", nn.Flatten()),
            ("linear", seeded(nn.Linear, 64 * segments, n_outputs, rng=rng)),
        ]
        super().__init__(OrderedDict(layers))
