"""The non-invariant baseline: the network as it is, trained on the data as they are.

    minimise  1/B sum_b loss(f(x_b), y_b) + decay/2 |theta|^2

All widths are zero, one view per input, no warp at all.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from augury.methods.optimizers import for_weights
from augury.records import Width
from augury.training.batches import Batches
from augury.training.config import LearnConfig
from augury.training.evaluate import LOSSES
from augury.training.learner import Findings, Learner
from augury.training.schedule import Cosine
from augury.transforms.base import Transform


class Plain(Learner):
    """Train the bare network.

    Parameters
    ----------
    net
        The network.
    transform
        What the other methods would learn; only its names and units are used, to say "zero" of each width.
    config
        The settings.
    task
        "classification" or "regression".
    N
        Size of the training set; not used here.
    """

    def __init__(
        self, net: nn.Module, transform: Transform | None, config: LearnConfig, task: str, N: int
    ) -> None:
        self.model = net
        self.specs = () if transform is None else transform.specs
        self.loss = LOSSES[task]
        self.weights = for_weights(net, config, config.weight_decay)
        self.schedule = Cosine(self.weights, config.rate_end)

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        """Take one step on the plain loss.

        Parameters
        ----------
        x, y
            Inputs and targets.
        rng
            Not used: nothing is random here.

        Returns
        -------
        float
            The loss.
        """
        loss = self.loss(self.model(x), y)
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
        """Say that every width is zero, as given.

        Parameters
        ----------
        batches, rng
            Not used.

        Returns
        -------
        Findings
            No transformation at all.
        """
        return Findings({
            s.name: Width(s.unit.to_person(0.0), s.unit.symbol, verdict="given") for s in self.specs
        })
