"""Augerino (Benton et al., 2020), in the form that paper A compares with (section 5 and its code).

    minimise over theta and eta   1/B sum_b loss(1/S sum_s f(g(x_b, eps_bs; eta)), y_b) - reward |eta|_2
    reward 0.01;  eta from 0 by Adam;  weight decay 1e-4 on theta only

One loss trains weights and widths together. The fit alone hardly increases a width; the reward does, until the
fit suffers more. The right strength depends on the parameterisation, which paper A criticises.

The paper's rate for eta is 0.005 over 1,000 epochs; ours is 0.1 over 15.
With 0.05 it stopped near 90 degrees on fully rotated digits.

Augerino's own code differs: width = softplus(raw) with noise on +-width/2; one view per input in training;
the log-softmax, not the logits, averaged over four views in evaluation.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from augury.config.learn import LearnConfig
from augury.models.orbit import OrbitAverage
from augury.training.evaluate import LOSSES
from augury.training.learner import Learner
from augury.training.optimizers import Cosine, clipped_step, for_weights
from augury.transforms.base import Transform


class Augerino(Learner):
    """Train the orbit average of a network, and its widths, by one loss."""

    model: OrbitAverage

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        self.model = OrbitAverage(net, transform, config.samples, config.samples_eval)
        self.loss, self.reward = LOSSES[task], config.eta_reward
        self.weights = for_weights(net, config, config.weight_decay)
        self.widths = torch.optim.Adam(transform.parameters(), lr=config.eta_rate)
        weights = Cosine(self.weights, config.rate_end, config.warm_up)
        self.cosines, self.clip = [weights, Cosine(self.widths, config.eta_rate_end)], config.clip

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        transform = self.model.transform
        loss = self.loss(self.model.average(x, rng), y)
        objective = loss - self.reward * torch.linalg.vector_norm(transform.eta)
        value = self.backward(objective, loss, rng, self.weights, self.widths)
        clipped_step(self.weights, self.clip)
        self.widths.step()
        transform.project_()
        return value

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        return {"weights": self.weights, "widths": self.widths}
