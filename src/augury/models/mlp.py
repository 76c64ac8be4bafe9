"""MLPs: paper A's 784-1000-10 with tanh, paper D's five layers with ReLU, the toy 2-50-2."""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from augury.core.errors import InputError, choose
from augury.models.layers import seeded

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}
"""What may stand between two linear layers."""


class MLP(nn.Sequential):
    """Linear layers with an activation between each two; inputs of any shape are flattened first."""

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
        super().__init__(OrderedDict(layers[:-1]))  # nothing stands after the last linear layer
