"""What methods with a given transformation share: widths that stay, one optimiser for the weights.

Fixed widths: the orbit average that a user asks for, learning nothing but the weights.

    minimise  1/B sum_b loss(1/S sum_s f(g(x_b, eps_bs; eta)), y_b) + decay/2 |theta|^2,   eta as given

What data augmentation by hand would be, and the yardstick for the cost of learning eta.

Data augmentation (paper D's DA): the bare network, trained on one random view of every input per step.

    minimise  1/B sum_b loss(f(g_b x_b), y_b),   g_b from the given transformation

What most people do. `augmented` differs: it trains, and evaluates, the average of the network over the orbit.

Weight tying (paper D's WT): the first layer tied over a finite group and pooled, trained on the data as they are.

    minimise  1/B sum_b loss(rest(max_j first(g_j x_b)), y_b)

Nothing about the invariance is learned; it holds exactly, on any input (see `augury.models.weight_tied`).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.config.learn import LearnConfig
from augury.core.errors import InputError
from augury.models.orbit import OrbitAverage
from augury.models.weight_tied import exact_group, tie
from augury.training.batches import Batches
from augury.training.evaluate import LOSSES
from augury.training.learner import Findings, Learner, widths_of
from augury.training.optimizers import Cosine, for_weights
from augury.transforms.base import Transform
from augury.transforms.finite_groups import FiniteGroup


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


class Augmented(GivenTransform):
    """Train the orbit average of a network under widths that stay as they are."""

    model: OrbitAverage

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        super().__init__(
            OrbitAverage(net, transform, config.samples, config.samples_eval), transform, config, task
        )

    def objective(
        self, x: Float[Tensor, "B ..."], y: Shaped[Tensor, "B ..."], rng: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of the orbit average, which is what is minimised."""
        loss = self.loss(self.model.average(x, rng), y)
        return loss, loss


class DataAugmented(GivenTransform):
    """Train the bare network on transformed copies."""

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        super().__init__(net, transform, config, task)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the loss on random views, twice."""
        loss = self.loss(self.model(random_views(self.given, x, rng)), y)
        return loss, loss


class TiedLearner(GivenTransform):
    """Train a network whose first layer is tied."""

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        super().__init__(tie(net, exact_group(transform)), transform, config, task)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the plain loss, twice."""
        loss = self.loss(self.model(x), y)
        return loss, loss
