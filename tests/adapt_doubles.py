"""An extractor whose descriptor is understood, and tasks whose right descriptor is known."""

import torch

from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.models.hypernetwork import HyperExtractor

SHAPE = (2, 8, 8)


def extractor() -> HyperExtractor:
    """conv16 on two channels; entry k of the descriptor turns channel k off as it goes from 0 to 1."""
    made = HyperExtractor("conv16", ("left", "right"), SHAPE, generator(0), d_h=2)
    (shape,) = made.weights.shapes.values()
    kernel = torch.randn(shape, generator=generator(1)) / 5
    with torch.no_grad():
        made.weights.first.weight.copy_(4 * torch.eye(2))
        made.weights.first.bias.fill_(-2)
        made.weights.b2[0].copy_(kernel.flatten() / 2)
        for k in range(2):
            share = torch.zeros(shape)
            share[:, k] = -kernel[:, k] / 2
            made.weights.w2[0][k] = share.flatten()
    return made.eval()


def task(channel: int = 0, N: int = 160, kind: str = "classification", stripe: float = 0.25) -> Dataset:
    """Stripes in both channels, each with a class of its own; the label is that of one channel."""
    rng = generator(0)
    M, classes = 2 * N, 2
    own = torch.randint(classes, (M, 2), generator=rng)
    x = 0.45 * torch.rand(M, *SHAPE, generator=rng)
    for k in range(2):
        for c in range(classes):
            x[own[:, k] == c, k, 2 * c : 2 * c + 2] += stripe
    y = own[:, channel]
    if kind == "regression":
        level = torch.rand(M, 2, generator=rng)
        x = x + level[:, :, None, None] * 0.3
        y = torch.stack([level[:, channel], -3 * level[:, channel] + 0.1 * torch.randn(M, generator=rng)], 1)
    return Dataset(x[:N], y[:N], x[N:], y[N:], task=kind, source="stripes")
