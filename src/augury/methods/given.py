"""What methods with a given transformation share: widths that stay, one optimiser for the weights."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.methods.optimizers import for_weights
from augury.training.batches import Batches
from augury.training.config import LearnConfig
from augury.training.evaluate import LOSSES
from augury.training.learner import Findings, Learner, widths_of
from augury.training.schedule import Cosine
from augury.transforms.base import Transform
from augury.transforms.finite_group import FiniteGroup


class GivenTransform(Learner):
    """Trains a network, or its orbit average, with a transformation whose widths stay as they are."""

    def __init__(self, model: nn.Module, transform: Transform, config: LearnConfig, task: str) -> None:
        if isinstance(transform, FiniteGroup) and not transform.eta.any():
            with torch.no_grad():
                transform.eta.fill_(transform.specs[0].upper)
        if not transform.eta.any():
            raise InputError(
                f"method '{config.method}' needs at least one width above zero among {', '.join(transform.names)}, or "
                f"a finite group such as C4; got none. Give some, such as widths={{'rotation': 30}} "
                f"(--width rotation=30)."
            )
        self.model, self.given = model, transform.requires_grad_(False)
        self.loss = LOSSES[task]
        self.weights = for_weights(model, config, config.weight_decay)
        self.cosine = Cosine(self.weights, config.rate_end)

    @property
    def transform(self) -> Transform:
        """The transformation as it was given."""
        return self.given

    @abstractmethod
    def objective(
        self, x: Float[Tensor, "B ..."], y: Shaped[Tensor, "B ..."], rng: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of a mini-batch and what is minimised."""

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        """Take one step down the objective."""
        loss, objective = self.objective(x, y, rng)
        self.weights.zero_grad()
        objective.backward()
        self.weights.step()
        return loss.item()

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """Return the one optimiser."""
        return {"weights": self.weights}

    def schedules(self) -> Sequence[Cosine]:
        """Return the one schedule."""
        return [self.cosine]

    def conclude(self, batches: Batches, rng: torch.Generator) -> Findings:
        """Say what was given."""
        return Findings(widths_of(self.given, "given"))


def random_views(
    transform: Transform, x: Float[Tensor, "B ..."], rng: torch.Generator
) -> Float[Tensor, "B ..."]:
    """Return one random view of every input: an element of a finite group, each as likely, or a draw of the noise."""
    return _views(transform, x, rng, 0)


def moving_views(
    transform: Transform, x: Float[Tensor, "B ..."], rng: torch.Generator
) -> Float[Tensor, "B ..."]:
    """Do the same without the identity of a finite group, which shows nothing of an invariance error."""
    return _views(transform, x, rng, 1)


def _views(transform: Transform, x: Tensor, rng: torch.Generator, first: int) -> Tensor:
    if not isinstance(transform, FiniteGroup):
        return transform(x, 1, rng)[:, 0]
    which = torch.randint(first, transform.order, (len(x),), generator=rng, device=rng.device).to(x.device)
    views = torch.empty_like(x)
    for j in range(first, transform.order):
        chosen = which == j
        views[chosen] = transform.element(x[chosen], j)
    return views
