"""The non-invariant baseline: the network as it is, trained on the data as they are (paper A, section 5).

    minimise  1/B sum_b -log p(y_b | f(x_b)) + delta |theta|^2 / 2N,      delta by the marginal likelihood

All widths are zero, one view per input, no warp at all. With evidence="none" nothing Bayesian is done: the prior is a
fixed weight decay, and any network will do.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from augury.methods.evidence_settings import AnyEvidence, make_evidence
from augury.methods.optimizers import for_weights
from augury.models.orbit import OrbitAverage
from augury.records import Width
from augury.training.batches import Batches
from augury.training.config import LearnConfig
from augury.training.evaluate import LOSSES
from augury.training.learner import Findings, Learner
from augury.training.schedule import Cosine
from augury.transforms.base import Transform
from augury.transforms.identity import Identity


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
        Size of the training set.
    """

    def __init__(
        self, net: nn.Module, transform: Transform | None, config: LearnConfig, task: str, N: int
    ) -> None:
        self.model, self.config = net, config
        self.specs = () if transform is None else transform.specs
        self.loss = LOSSES[task]
        self.evidence: AnyEvidence | None = None
        if config.evidence != "none":
            self.evidence = make_evidence(OrbitAverage(net, Identity(), 1, 1), config, task, N)
        self.weights = for_weights(net, config, 0.0 if self.evidence else config.weight_decay)
        self.schedule = Cosine(self.weights, config.rate_end)

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        """Take one step on the weights.

        Parameters
        ----------
        x, y
            Inputs and targets.
        rng
            Not used: nothing is random here.

        Returns
        -------
        float
            The loss without the prior.
        """
        f = self.model(x)
        evidence = self.evidence
        loss = self.loss(f, y) if evidence is None else -evidence.likelihood.log_prob(f, y) / len(x)
        self.weights.zero_grad()
        loss.backward()
        if self.evidence is not None:
            self.evidence.add_prior_gradient()
        self.weights.step()
        return loss.item()

    def end_epoch(self, batches: Batches, epoch: int, rng: torch.Generator) -> dict[str, float]:
        """Move the prior precision up the evidence, where it is time to.

        Parameters
        ----------
        batches
            The training set.
        epoch
            How many epochs are done.
        rng
            Where order and noise come from.

        Returns
        -------
        dict
            The log evidence and the prior precision; nothing in the epochs between.
        """
        diagnostics: dict[str, float] = {}
        if self.evidence is not None:
            for _ in range(self.config.climbs(epoch, batches.N)):
                diagnostics = self.evidence.step(batches(rng), rng)
        return diagnostics

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """Return the optimisers.

        Returns
        -------
        Mapping
            For the weights, and for the prior where it is learned.
        """
        prior = {} if self.evidence is None else {"prior": self.evidence.delta_optimizer}
        return {"weights": self.weights, **prior}

    def schedules(self) -> Sequence[Cosine]:
        """Return the one schedule.

        Returns
        -------
        Sequence
            Cosine for the weights.
        """
        return [self.schedule]

    def modules(self) -> Mapping[str, nn.Module]:
        """Return the network, and the likelihood where there is one.

        Returns
        -------
        Mapping
            Everything with parameters, the prior precision aside.
        """
        likelihood = {} if self.evidence is None else {"likelihood": self.evidence.likelihood}
        return {"model": self.model, **likelihood}

    def extra_state(self) -> dict[str, Tensor]:
        """Return the prior precision, where it is learned.

        Returns
        -------
        dict
            log delta.
        """
        return {} if self.evidence is None else self.evidence.state()

    def load_extra_state(self, state: Mapping[str, Tensor]) -> None:
        """Take the prior precision back.

        Parameters
        ----------
        state
            What `extra_state` gave.
        """
        if self.evidence is not None:
            self.evidence.load_state(state)

    def conclude(self, batches: Batches, rng: torch.Generator) -> Findings:
        """Say that every width is zero, as given; give the evidence where there is one.

        Parameters
        ----------
        batches
            The training set.
        rng
            Where noise comes from.

        Returns
        -------
        Findings
            No transformation at all.
        """
        zero = {s.name: Width(s.unit.to_person(0.0), s.unit.symbol, verdict="given") for s in self.specs}
        value = None if self.evidence is None else self.evidence.value(batches(), rng)
        return Findings(zero, value, value)
