"""The non-invariant baseline: the network as it is, trained on the data as they are (paper A, section 5).

    minimise  1/B sum_b -log p(y_b | f(x_b)) + delta |theta|^2 / 2N,      delta by the marginal likelihood

All widths are zero, one view per input, no warp at all. With evidence="none" nothing Bayesian is done: the prior is a
fixed weight decay, and any network can be used.
"""

import torch
from torch import Tensor, nn

from augury.config.learn import LearnConfig
from augury.methods.lila import WithEvidence, cosine_of, make_evidence
from augury.methods.widths import evidence_of
from augury.models.orbit import OrbitAverage
from augury.records.results import Width
from augury.training.batches import Batches
from augury.training.evaluate import LOSSES
from augury.training.learner import Findings
from augury.training.optimizers import for_weights
from augury.transforms.base import Transform
from augury.transforms.compose import Identity


class Plain(WithEvidence):
    """Train the bare network."""

    def __init__(self, net: nn.Module, transform: Transform | None, config: LearnConfig, task: str, N: int) -> None:
        self.model, self.config = net, config
        self.specs = () if transform is None else transform.specs
        self.loss = LOSSES[task]
        self.evidence = None
        if config.evidence != "none":
            self.ends_with = "evidence"
            self.evidence = make_evidence(OrbitAverage(net, Identity(), 1, 1), config, task, N)
        self.weights = for_weights(net, config, 0.0 if self.evidence else config.weight_decay)
        self.cosines = [cosine_of(self.weights, config, config.rate_end, config.warm_up)]

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        f = self.model(x)
        evidence = self.evidence
        loss = self.loss(f, y) if evidence is None else -evidence.likelihood.log_prob(f, y) / len(x)
        return self.take_step(loss, rng)

    def conclude(self, batches: Batches, rng: torch.Generator) -> Findings:
        """Return zero for every width, and the evidence if there is one."""
        zero = {s.name: Width(s.unit.to_person(0.0), s.unit.symbol, verdict="given") for s in self.specs}
        value = None if self.evidence is None else evidence_of(self.evidence, batches, rng)
        return Findings(zero, value)
