"""LILA: learn invariances by the differentiable Laplace marginal likelihood (paper A, Eqs. 8-16).

every step            theta down  1/B sum_b -log p(y_b | f_hat(x_b)) + delta |theta|^2 / 2N,   eta held fixed
every few epochs      factors of the curvature from a sample of the data;
delta (and sigma in regression) up the evidence, in closed form;
eta up the evidence, several mini-batch steps on the same factors
in the end            the epoch with the best evidence; each width with an interval and a verdict
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from augury.methods.evidence_settings import AnyEvidence, make_evidence
from augury.methods.interval import judged
from augury.methods.optimizers import for_weights
from augury.models.orbit import OrbitAverage
from augury.training.batches import Batches
from augury.training.config import LearnConfig
from augury.training.learner import Findings, Learner
from augury.training.schedule import Cosine
from augury.transforms.base import Transform


class Lila(Learner):
    """Weights by their posterior mode, widths and prior by the evidence.

    Parameters
    ----------
    net
        The network.
    transform
        Holds the widths.
    config
        The settings.
    task
        "classification" or "regression".
    N
        Size of the training set.
    only
        Names of the layers to be Bayesian about; all unless told.
    """

    model: OrbitAverage

    def __init__(
        self,
        net: nn.Module,
        transform: Transform,
        config: LearnConfig,
        task: str,
        N: int,
        only: Sequence[str] | None = None,
    ) -> None:
        self.config = config
        self.model = OrbitAverage(net, transform, config.samples, config.samples_eval)
        self.weights = for_weights(net, config, weight_decay=0.0)
        self.evidence: AnyEvidence = make_evidence(self.model, config, task, N, only)
        self.cosines = [
            Cosine(self.weights, config.rate_end),
            Cosine(self.evidence.eta_optimizer, config.eta_rate_end),
        ]

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        """Take one step on the weights.

        Parameters
        ----------
        x, y
            Inputs and targets.
        rng
            Where the noise of the views comes from.

        Returns
        -------
        float
            The mean negative log-likelihood.
        """
        with torch.no_grad():
            views = self.model.views(x, rng)
        f_hat = self.model.net(views).unflatten(0, (len(x), -1)).mean(1)
        loss = -self.evidence.likelihood.log_prob(f_hat, y) / len(x)
        self.weights.zero_grad()
        loss.backward()
        self.evidence.add_prior_gradient()
        self.weights.step()
        return loss.item()

    def end_epoch(self, batches: Batches, epoch: int, rng: torch.Generator) -> dict[str, float]:
        """Climb the evidence, where it is time to.

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
        for _ in range(self.config.climbs(epoch, batches.N)):
            diagnostics = self.evidence.step(batches(rng), rng)
        return diagnostics

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """Return the three optimisers.

        Returns
        -------
        Mapping
            For the weights, the widths, and the prior with the noise.
        """
        prior = self.evidence.delta_optimizer
        return {"weights": self.weights, "widths": self.evidence.eta_optimizer, "prior": prior}

    def schedules(self) -> Sequence[Cosine]:
        """Return the schedules.

        Returns
        -------
        Sequence
            Cosine for the weights and for the widths.
        """
        return self.cosines

    def modules(self) -> Mapping[str, nn.Module]:
        """Return the model and the likelihood.

        Returns
        -------
        Mapping
            Everything with parameters, the prior precision aside.
        """
        return {"model": self.model, "likelihood": self.evidence.likelihood}

    def extra_state(self) -> dict[str, Tensor]:
        """Return the prior precision.

        Returns
        -------
        dict
            log delta.
        """
        return self.evidence.state()

    def load_extra_state(self, state: Mapping[str, Tensor]) -> None:
        """Take the prior precision back.

        Parameters
        ----------
        state
            What `extra_state` gave.
        """
        self.evidence.load_state(state)

    def conclude(self, batches: Batches, rng: torch.Generator) -> Findings:
        """Give every width its interval and verdict, and the evidence over all the data.

        Parameters
        ----------
        batches
            The training set.
        rng
            Where noise comes from.

        Returns
        -------
        Findings
            What was learned.
        """
        widths = judged(self.evidence, batches, rng)
        return Findings(widths, self.evidence.value(batches(), rng))
