"""What both ways of pre-training share: an extractor, heads that are thrown away, views, one optimiser.

A step draws two views of every image for each descriptor, by the groups that the descriptor names, and passes them
through the weights that the descriptor generates. Statistics of batch normalisation are those of one descriptor's
views: mixed over descriptors they would fit none.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.methods.hyper.settings import AmortizeConfig
from augury.methods.hyper.views import Views
from augury.models.hyper import HyperExtractor
from augury.training.learner import Learner
from augury.training.schedule import Cosine

SHARED_DESCRIPTOR = 0.5
"""Every entry of the one descriptor that stands for all, where the extractor is to be shared."""


class Pretrainer(Learner):
    """Trains a hyper-extractor."""

    def __init__(
        self,
        extractor: HyperExtractor,
        heads: nn.Module,
        views: Views,
        descriptors: Sequence[Sequence[float]],
        config: AmortizeConfig,
    ) -> None:
        self.model: HyperExtractor = extractor
        self.heads, self.views, self.config = heads, views, config
        self.descriptors = [tuple(descriptor) for descriptor in descriptors]
        parameters = [*extractor.parameters(), *heads.parameters()]
        self.weights = torch.optim.Adam(parameters, lr=config.rate, weight_decay=config.weight_decay)
        self.cosine = Cosine(self.weights, config.rate_end)

    @abstractmethod
    def objective(
        self, x: Float[Tensor, "B ..."], y: Shaped[Tensor, "B ..."], rng: torch.Generator
    ) -> Float[Tensor, ""]:
        """Return what is minimised."""

    def features(
        self, x: Float[Tensor, "B ..."], which: Sequence[int], rng: torch.Generator
    ) -> Float[Tensor, "M two B d"]:
        """Return the features of two views of every image at some of the descriptors."""
        chosen = [self.descriptors[m] for m in which]
        i = next(self.model.parameters()).new_tensor(chosen)
        if self.config.shared:
            i = torch.full_like(i, SHARED_DESCRIPTOR)
        twice = torch.cat([x, x])
        views = torch.stack([self.views(twice, descriptor, rng) for descriptor in chosen])
        return self.model.each(views, i).unflatten(1, (2, len(x)))

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        """Take one step down the objective."""
        loss = self.objective(x, y, rng)
        self.weights.zero_grad()
        loss.backward()
        self.weights.step()
        return loss.item()

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """Return the one optimiser."""
        return {"weights": self.weights}

    def schedules(self) -> Sequence[Cosine]:
        """Return the one schedule."""
        return [self.cosine]

    def modules(self) -> Mapping[str, nn.Module]:
        """Return all that is trained."""
        return {"model": self.model, "heads": self.heads}
