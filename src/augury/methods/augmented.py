"""Fixed widths: the orbit average that a user asks for, learning nothing but the weights.

    minimise  1/B sum_b loss(1/S sum_s f(g(x_b, eps_bs; eta)), y_b) + decay/2 |theta|^2,   eta as given

What data augmentation by hand would be, and the yardstick for the cost of learning eta.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.methods.optimizers import for_weights
from augury.models.orbit import OrbitAverage
from augury.training.batches import Batches
from augury.training.config import LearnConfig
from augury.training.evaluate import LOSSES
from augury.training.learner import Findings, Learner, widths_of
from augury.training.schedule import Cosine
from augury.transforms.base import Transform


class Augmented(Learner):
    """Train the orbit average of a network under widths that stay as they are.

    Parameters
    ----------
    net
        The network.
    transform
        Its widths must be set, at least one of them above zero.
    config
        The settings.
    task
        "classification" or "regression".
    N
        Size of the training set; not used here.
    """

    model: OrbitAverage

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        if not transform.eta.any():
            raise InputError(
                f"method 'augmented' needs at least one width above zero among {', '.join(transform.names)}; "
                f"got none. Give some, such as widths={{'rotation': 30}} (--width rotation=30)."
            )
        transform.requires_grad_(False)
        self.model = OrbitAverage(net, transform, config.samples, config.samples_eval)
        self.loss = LOSSES[task]
        self.weights = for_weights(net, config, config.weight_decay)
        self.schedule = Cosine(self.weights, config.rate_end)

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        """Take one step on the loss of the orbit average.

        Parameters
        ----------
        x, y
            Inputs and targets.
        rng
            Where the noise of the views comes from.

        Returns
        -------
        float
            The loss.
        """
        loss = self.loss(self.model.average(x, rng), y)
        self.weights.zero_grad()
        loss.backward()
        self.weights.step()
        return loss.item()

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """Return the one optimiser.

        Returns
        -------
        Mapping
            For the weights.
        """
        return {"weights": self.weights}

    def schedules(self) -> Sequence[Cosine]:
        """Return the one schedule.

        Returns
        -------
        Sequence
            Cosine for the weights.
        """
        return [self.schedule]

    def conclude(self, batches: Batches, rng: torch.Generator) -> Findings:
        """Say what was given.

        Parameters
        ----------
        batches, rng
            Not used.

        Returns
        -------
        Findings
            The widths as they were set.
        """
        return Findings(widths_of(self.transform, "given"))
