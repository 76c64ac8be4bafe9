"""A small PointNet for point clouds [P, 3]: an MLP shared by all points, a maximum over them, an MLP more.

The maximum does not know the order of the points, so neither does the network. Ties share their gradient
evenly (`amax`), so the gradient does not know it either.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.models.layers import seeded


class PointNet(nn.Module):
    """Shared layers 3-64-64-128 with ReLU, the maximum over the points, then 128-64-outputs."""

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
        """Return the outputs of every cloud."""
        return self.head(self.shared(x).amax(1))
