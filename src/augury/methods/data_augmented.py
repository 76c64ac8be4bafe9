"""Data augmentation (paper D's DA): the bare network, trained on one random view of every input per step.

    minimise  1/B sum_b loss(f(g_b x_b), y_b),   g_b from the given transformation

What most people do. `augmented` differs: it trains, and evaluates, the average of the network over the orbit.
"""

import torch
from torch import Tensor, nn

from augury.methods.given import GivenTransform, random_views
from augury.training.config import LearnConfig
from augury.transforms.base import Transform


class DataAugmented(GivenTransform):
    """Train the bare network on transformed copies."""

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        super().__init__(net, transform, config, task)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the loss on random views, twice."""
        loss = self.loss(self.model(random_views(self.given, x, rng)), y)
        return loss, loss
