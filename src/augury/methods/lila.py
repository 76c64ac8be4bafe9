"""LILA: learn invariances by the differentiable Laplace marginal likelihood (paper A, Eqs. 8-16).

every step            theta down  1/B sum_b -log p(y_b | f_hat(x_b)) + delta |theta|^2 / 2N,   eta held fixed
every few epochs      factors of the curvature from a sample of the data;
delta (and sigma in regression) up the evidence, in closed form;
eta up the evidence, several mini-batch steps on the same factors
in the end            the epoch with the best evidence; each width with an interval and a verdict
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from augury.methods.evidence_settings import AnyEvidence, make_evidence
from augury.methods.guessing import sober
from augury.methods.interval import judged
from augury.methods.optimizers import for_weights
from augury.methods.with_evidence import WithEvidence
from augury.models.orbit import OrbitAverage
from augury.training.batches import Batches
from augury.training.config import LearnConfig
from augury.training.learner import Findings
from augury.training.schedule import Cosine
from augury.transforms.base import Transform


class Lila(WithEvidence):
    """Weights by their posterior mode, widths and prior by the evidence."""

    model: OrbitAverage
    evidence: AnyEvidence

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
        self.evidence = make_evidence(self.model, config, task, N, only)
        self.cosines = [
            Cosine(self.weights, config.rate_end),
            Cosine(self.evidence.eta_optimizer, config.eta_rate_end),
        ]

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        """Take one step on the weights."""
        with torch.no_grad():
            views = self.model.views(x, rng)
        f_hat = self.model.net(views).unflatten(0, (len(x), -1)).mean(1)
        loss = -self.evidence.likelihood.log_prob(f_hat, y) / len(x)
        return self.take_step(loss)

    def conclude(self, batches: Batches, rng: torch.Generator) -> Findings:
        """Give every width its interval and verdict, and the evidence over all the data."""
        widths = judged(self.evidence, batches, rng)
        found = Findings(widths, self.evidence.value(batches(), rng))
        # The bound by the NTK is loose: that it is below a guess says nothing.
        return found if self.config.evidence == "ntk" else sober(found, batches.y)
