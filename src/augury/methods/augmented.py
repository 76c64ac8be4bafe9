"""Fixed widths: the orbit average that a user asks for, learning nothing but the weights.

    minimise  1/B sum_b loss(1/S sum_s f(g(x_b, eps_bs; eta)), y_b) + decay/2 |theta|^2,   eta as given

What data augmentation by hand would be, and the yardstick for the cost of learning eta.
"""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.methods.given import GivenTransform
from augury.models.orbit import OrbitAverage
from augury.training.config import LearnConfig
from augury.transforms.base import Transform


class Augmented(GivenTransform):
    """Train the orbit average of a network under widths that stay as they are."""

    model: OrbitAverage

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        super().__init__(
            OrbitAverage(net, transform, config.samples, config.samples_eval), transform, config, task
        )

    def objective(
        self, x: Float[Tensor, "B ..."], y: Shaped[Tensor, "B ..."], rng: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of the orbit average, which is what is minimised."""
        loss = self.loss(self.model.average(x, rng), y)
        return loss, loss
