"""The interface between the training loop and a method: a step on a mini-batch, and the end of an epoch.

The loop owns the order of the data, the random streams, the schedules, checkpoints and the choice of the best
epoch. A learner owns the network, the widths and their optimisers. One epoch of any method is

    for x, y in batches(shuffle):  loss = learner.train_step(x, y, rng)
    diagnostics = learner.end_epoch(batches, epoch, rng)

Everything that changes during training must be reachable from `modules`, `optimizers` or `extra_state`: that
is what a checkpoint holds, and what lets a killed run resume bit for bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.world import ALONE, World
from augury.models.batchnorm import refuse_coupled
from augury.models.orbit import OrbitAverage
from augury.records.results import Record, Width
from augury.training.batches import Batches
from augury.training.optimizers import Cosine
from augury.transforms.base import Transform

LOG_EVIDENCE = "log_evidence"  # key of `end_epoch` under which the loop looks for what the best epoch is chosen by


@dataclass(frozen=True)
class Findings(Record):
    """The results of a learner after training."""

    widths: dict[str, Width]
    """Every width by its generator's name, without the planted truth, which a learner does not know."""
    log_evidence: float | None = None  # log evidence of the final state, if the method has one
    notes: tuple[str, ...] = ()  # remarks, such as a target that was not reached


def untold(done: int, total: int) -> None:
    """Say nothing."""


class Learner(ABC):
    """One method applied to one network."""

    ends_with = ""  # what `conclude` computes, if it takes a while
    tell: Callable[[int, int], None] = staticmethod(untold)  # called by `conclude` with how much is done, and the total
    model: nn.Module  # the trained model: an `OrbitAverage`, or a plain network
    cosines: Sequence[Cosine] = ()
    world: World = ALONE  # the processes that train it together, each on its part of every batch

    def join(self, world: World) -> None:
        """Take part in several processes."""
        self.world = world
        if world.size > 1:
            refuse_coupled(self.model)

    def backward(
        self, objective: Tensor, loss: Tensor, rng: torch.Generator, *optimizers: torch.optim.Optimizer
    ) -> float:
        """Leave the objective's gradient over the whole batch, of all processes, and return the loss over it."""
        for optimizer in optimizers:
            optimizer.zero_grad()
        moved = [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
        return self.world.backward(objective, loss, moved, getattr(rng, "part", None))

    @abstractmethod
    def train_step(self, x: Float[Tensor, "B ..."], y: Shaped[Tensor, "B ..."], rng: torch.Generator) -> float:
        """Take one optimiser step on a mini-batch."""

    def end_epoch(self, batches: Batches, epoch: int, rng: torch.Generator) -> dict[str, float]:
        """Once per epoch: evidence, steps on the widths and on the prior."""
        return {}

    @abstractmethod
    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """Return every optimiser by a name of its own."""

    def schedules(self) -> Sequence[Cosine]:
        """Return the schedules that the loop sets before every step."""
        return self.cosines

    def modules(self) -> Mapping[str, nn.Module]:
        """Return every module whose state belongs in a checkpoint."""
        return {"model": self.model}

    def extra_state(self) -> dict[str, Tensor]:
        """Return what else changes during training: a prior precision, a noise level."""
        return {}

    def load_extra_state(self, state: Mapping[str, Tensor]) -> None:  # noqa: B027
        """Restore what `extra_state` returned."""

    @property
    def transform(self) -> Transform | None:
        """The distribution over transformations, if the method has one."""
        return self.model.transform if isinstance(self.model, OrbitAverage) else None

    def finish(self) -> None:  # noqa: B027
        """Train on after `conclude`: from now on only the weights move."""

    def conclude(self, batches: Batches, rng: torch.Generator) -> Findings:
        """Return what was learned, after the best epoch has been restored."""
        return Findings(widths_of(self.transform, "undecided"))

    def confirm(self, findings: Findings, batches: Batches) -> Findings:
        """Return what of the findings the trained network bears out in the end."""
        return findings


def widths_of(transform: Transform | None, verdict: str) -> dict[str, Width]:
    """Return the widths of a transformation as records, all with one verdict."""
    if transform is None:
        return {}
    units = {spec.name: spec.unit.symbol for spec in transform.specs}
    return {name: Width(value, units[name], verdict=verdict) for name, value in transform.describe().items()}
