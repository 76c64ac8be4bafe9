"""What methods with a prior share: weights by their posterior mode, and now and then a step up the evidence."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from augury.methods.evidence_settings import AnyEvidence
from augury.training.batches import Batches
from augury.training.config import LearnConfig
from augury.training.learner import Learner
from augury.training.schedule import Cosine


class WithEvidence(Learner):
    """Keeps the books of a learner whose prior, and whatever else `evidence` moves, is learned by the evidence."""

    config: LearnConfig
    """The settings."""
    weights: torch.optim.Optimizer
    """For the weights."""
    cosines: list[Cosine]
    """For every optimiser that has a schedule."""
    evidence: AnyEvidence | None
    """None where nothing Bayesian is done."""

    def take_step(self, loss: Tensor) -> float:
        """Take one step on the weights, down the loss and the prior."""
        self.weights.zero_grad()
        loss.backward()
        if self.evidence is not None:
            self.evidence.add_prior_gradient()
        self.weights.step()
        return loss.item()

    def end_epoch(self, batches: Batches, epoch: int, rng: torch.Generator) -> dict[str, float]:
        """Climb the evidence, where it is time to."""
        diagnostics: dict[str, float] = {}
        if self.evidence is not None:
            for _ in range(self.config.climbs(epoch, batches.N)):
                diagnostics = self.evidence.step(batches(rng), rng)
        return diagnostics

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """Return the optimisers."""
        if self.evidence is None:
            return {"weights": self.weights}
        widths = {"widths": self.evidence.eta_optimizer} if self.evidence.eta else {}
        return {"weights": self.weights, **widths, "prior": self.evidence.delta_optimizer}

    def schedules(self) -> Sequence[Cosine]:
        """Return the schedules."""
        return self.cosines

    def modules(self) -> Mapping[str, nn.Module]:
        """Return the model, and the likelihood where there is one."""
        likelihood = {} if self.evidence is None else {"likelihood": self.evidence.likelihood}
        return {"model": self.model, **likelihood}

    def extra_state(self) -> dict[str, Tensor]:
        """Return the prior precision, where it is learned."""
        return {} if self.evidence is None else self.evidence.state()

    def load_extra_state(self, state: Mapping[str, Tensor]) -> None:
        """Take the prior precision back."""
        if self.evidence is not None:
            self.evidence.load_state(state)
