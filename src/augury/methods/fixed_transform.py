"""Methods with a given transformation: its widths are fixed, only the weights are learned.

| method | minimises | |
|---|---|---|
| augmented | loss(1/S sum_s f(g_s x), y) + decay/2 abs(theta)^2 | the orbit average; the reference for learning eta |
| data_augmented | loss(f(g x), y), one random view per input and step | paper D's DA: ordinary data augmentation |
| weight_tied | loss(rest(max_j first(g_j x)), y) | paper D's WT: exactly invariant, see `augury.models.weight_tied` |
"""

from abc import abstractmethod
from collections.abc import Mapping

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.config.learn import LearnConfig
from augury.core.errors import InputError
from augury.core.rng import rows
from augury.models.orbit import OrbitAverage
from augury.models.weight_tied import exact_group, tie
from augury.training.batches import Batches
from augury.training.evaluate import LOSSES
from augury.training.learner import Findings, Learner, widths_of
from augury.training.optimizers import Cosine, clipped_step, for_weights
from augury.transforms.base import Transform
from augury.transforms.finite_groups import FiniteGroup


class GivenTransform(Learner):
    """Train a network, or its orbit average, with a transformation of fixed widths."""

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
        self.cosines, self.clip = [Cosine(self.weights, config.rate_end, config.warm_up)], config.clip

    @property
    def transform(self) -> Transform:
        return self.given

    @abstractmethod
    def objective(
        self, x: Float[Tensor, "B ..."], y: Shaped[Tensor, "B ..."], rng: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of a mini-batch and what is minimised."""

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        loss, objective = self.objective(x, y, rng)
        value = self.backward(objective, loss, rng, self.weights)
        clipped_step(self.weights, self.clip)
        return value

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        return {"weights": self.weights}

    def conclude(self, batches: Batches, rng: torch.Generator) -> Findings:
        """Return the widths as they were given."""
        return Findings(widths_of(self.given, "given"))


def random_views(
    transform: Transform, x: Float[Tensor, "B ..."], rng: torch.Generator, identity: bool = True
) -> Float[Tensor, "B ..."]:
    """Return one random view of every input: a draw of the noise, or any element of a finite group.

    Without the identity, views of a finite group always move, as a measure of invariance needs it.
    """
    if not isinstance(transform, FiniteGroup):
        views: Tensor = transform(x, 1, rng)
        return views[:, 0]
    first = 0 if identity else 1
    which = rows(
        lambda B: torch.randint(first, transform.order, (B,), generator=rng, device=rng.device), len(x), rng
    ).to(x.device)
    views = torch.empty_like(x)
    for j in range(first, transform.order):
        chosen = which == j
        views[chosen] = transform.element(x[chosen], j)
    return views


class Augmented(GivenTransform):
    """Train the orbit average of a network with fixed widths."""

    model: OrbitAverage

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        super().__init__(OrbitAverage(net, transform, config.samples, config.samples_eval), transform, config, task)

    def objective(
        self, x: Float[Tensor, "B ..."], y: Shaped[Tensor, "B ..."], rng: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        loss = self.loss(self.model.average(x, rng), y)
        return loss, loss


class DataAugmented(GivenTransform):
    """Train the bare network on transformed copies."""

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        super().__init__(net, transform, config, task)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        loss = self.loss(self.model(random_views(self.given, x, rng)), y)
        return loss, loss


class TiedLearner(GivenTransform):
    """Train a network whose first layer is tied."""

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        super().__init__(tie(net, exact_group(transform)), transform, config, task)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        loss = self.loss(self.model(x), y)
        return loss, loss
