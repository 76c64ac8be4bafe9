"""Weight tying (paper D's WT): the first layer tied over a finite group and pooled, trained on the data as they are.

    minimise  1/B sum_b loss(rest(max_j first(g_j x_b)), y_b)

Nothing about the invariance is learned; it holds exactly, on any input (see `augury.models.weight_tied`).
"""

import torch
from torch import Tensor, nn

from augury.methods.given import GivenTransform
from augury.models.weight_tied import exact_group, tie
from augury.training.config import LearnConfig
from augury.transforms.base import Transform


class TiedLearner(GivenTransform):
    """Train a network whose first layer is tied."""

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        super().__init__(tie(net, exact_group(transform)), transform, config, task)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the plain loss, twice."""
        loss = self.loss(self.model(x), y)
        return loss, loss
