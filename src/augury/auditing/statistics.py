"""The measures of a whole set, accumulated batch by batch: overall, by strength and by class.

LI is relative to the spread of the logits, the mean squared distance between the logits of two different inputs:
2 tr Cov f(x). A view as far from its input as another input is has LI_relative = 1.

Only counts, sums and sums of squares are kept, in float64: memory does not grow with the number of inputs.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from augury.auditing.data import Inputs
from augury.auditing.measures import Comparison, compare
from augury.auditing.model_source import Model
from augury.auditing.orbits import Orbit
from augury.auditing.worst import WorstCases
from augury.core.files import Progress
from augury.core.rng import generator
from augury.core.world import ALONE, World
from augury.records.results import Measure, Scores

LI, DI, AGREEMENT, SI = range(4)  # index of each measure in the moments

CONSTANT = 1e-13
"""The model is constant if the spread of its logits is below this share of their mean square: float32 rounding."""


@dataclass(frozen=True, eq=False)
class Auditor:
    """Measures sets of inputs with one model, orbit and saliency method."""

    model: Model
    orbit: Orbit
    C: int  # outputs of the model
    saliency: str | None  # saliency method; None without gradients
    batch: int  # views in one forward pass
    seed: int  # seed of the directions of the views
    step: Progress  # called with the name of the current pass, how many inputs are done, and their total
    world: World = ALONE  # the processes that share the inputs

    def measure(
        self, what: str, inputs: Inputs, gallery: WorstCases | None = None, round_trip: bool = False
    ) -> "SetStatistics":
        """Pass over the inputs once, with their views or, for the noise floor, with the views transformed back."""
        groups = max(self.C, len(inputs.class_names))
        labelled = inputs.y is not None and len(inputs.class_names) == self.C
        statistics = SetStatistics(self.orbit, groups, probabilities=not inputs.regression)
        rng, done = generator(self.seed), 0
        for x in inputs.x.split(max(1, self.batch // (self.orbit.S + 1))):
            rng.part = part = self.world.part(len(x))
            first, whole = done + (part.start if part else 0), len(x)
            x = x[part.rows] if part else x
            drawn = self.orbit.draw(len(x), rng)
            to_views = drawn.round_trip if round_trip else drawn.apply
            seen = compare(self.model, x, to_views, self.orbit.S, self.saliency)
            if inputs.y is not None:
                group = inputs.y[first : first + len(x)]
            else:
                group = torch.zeros(len(x), dtype=torch.int64) if inputs.regression else seen.f.argmax(-1)
            if part is None or part.weight:
                statistics.add(seen, group.to(seen.f.device), labelled)
                if gallery is not None:
                    gallery.add(seen, x, first)
            done += whole
            self.step(what, done, len(inputs.x))
        statistics.over(self.world, self.C)
        if gallery is not None:
            gallery.over(self.world)
        return statistics


class SetStatistics:
    """Means and standard errors of the measures, from comparisons added batch by batch."""

    def __init__(self, orbit: Orbit, groups: int, probabilities: bool = True) -> None:
        self.membership = orbit.membership()
        self.by_class = Moments(groups, 1 + len(orbit.levels), 4)
        self.logits: Moments | None = None
        self.right = Moments(1, 2)
        self.probabilities, self.has_SI = probabilities, True

    def add(self, seen: Comparison, group: Int[Tensor, " B"], labelled: bool = False) -> None:
        """Add a batch; `group` is the class of each input, true if `labelled`."""
        everything = torch.zeros_like(group)
        if labelled:
            right = seen.f.argmax(-1) == group
            right_moved = (seen.f_g.argmax(-1) == group[:, None]).double().mean(1)
            self.right.add(torch.stack([right.double(), right_moved], dim=1), everything)
        self.has_SI = self.has_SI and seen.SI is not None
        SI = torch.zeros_like(seen.LI) if seen.SI is None else seen.SI
        values = torch.stack([seen.LI, seen.DI, seen.agree.to(seen.LI), SI], dim=-1).cpu().double()
        by_level = torch.einsum("bsm,sl->blm", values, self.membership)
        self.by_class.add(torch.cat([values.mean(1, keepdim=True), by_level], dim=1), group)
        if self.logits is None:
            self.shift = seen.f.mean(0)  # far from 0, squares would lose the spread to rounding
            self.logits = Moments(1, seen.f.shape[1])
        self.logits.add(seen.f - self.shift, everything)

    def over(self, world: World, C: int) -> None:
        """Add up over all processes, the moments of C logits about the shift of the first process."""
        if world.size == 1:
            return
        if self.logits is None:
            self.shift, self.logits = torch.zeros(C), Moments(1, C)
        own = self.shift.cpu().double()
        world.same_([shift := own.clone()])
        self.logits.move(own - shift)
        self.shift = shift
        world.sum_(t for m in (self.by_class, self.right, self.logits) for t in (m.n, m.sums, m.squares))

    @property
    def images(self) -> int:
        return int(self.by_class.n.sum())

    def accuracy(self) -> tuple[float | None, float | None]:
        """Return the accuracy on inputs and on their views; None without labels."""
        plain, moved = self.right.mean().tolist() if self.right.n.any() else (None, None)
        return plain, moved

    def spread(self) -> float:
        """Return the mean squared distance between the logits of two inputs."""
        assert self.logits is not None
        n, mean = self.images, self.logits.mean()
        square = float((self.logits.squares[0] / n).sum())
        variance = max(0.0, square - float(mean.square().sum()))
        size = float((mean + self.shift.cpu()).square().sum()) + variance
        return 0.0 if variance <= CONSTANT * size else 2 * variance * n / (n - 1)

    def scores(self, level: int | None = None, group: int | None = None, spread: float | None = None) -> Scores:
        """Return the measures of all inputs or of one class, over all views or those of one strength."""
        at = 0 if level is None else 1 + level
        error = self.by_class.measure((at, LI), group)
        spread = self.spread() if spread is None else spread
        return Scores(
            LI=error,
            LI_relative=error.value / spread if spread else None,
            DI=self.by_class.measure((at, DI), group) if self.probabilities else None,
            SI=self.by_class.measure((at, SI), group) if self.has_SI else None,
            agreement=self.by_class.measure((at, AGREEMENT), group) if self.probabilities else None,
            images=self.images if group is None else int(self.by_class.n[group]),
        )


class Moments:
    """Running moments of vectors, one set per group of inputs."""

    def __init__(self, groups: int, *shape: int) -> None:
        self.n = torch.zeros(groups, dtype=torch.float64)
        self.sums = torch.zeros(groups, *shape, dtype=torch.float64)
        self.squares = torch.zeros(groups, *shape, dtype=torch.float64)

    def add(self, values: Float[Tensor, "B ..."], group: Int[Tensor, " B"]) -> None:
        values, group = values.detach().cpu().double(), group.cpu()
        self.n.index_add_(0, group, torch.ones(len(group), dtype=torch.float64))
        self.sums.index_add_(0, group, values)
        self.squares.index_add_(0, group, values.square())

    def move(self, by: Tensor) -> None:
        """Change the moments to those of the same vectors plus a constant."""
        n = self.n.view(-1, *[1] * by.ndim)
        self.squares += 2 * self.sums * by + n * by.square()
        self.sums += n * by

    def mean(self) -> Tensor:
        return self.sums.sum(0) / self.n.sum()

    def measure(self, index: tuple[int, ...], group: int | None = None) -> Measure:
        """Return the mean of one entry with its standard error over inputs."""
        which = slice(None) if group is None else slice(group, group + 1)
        n, sums, squares = float(self.n[which].sum()), self.sums[which].sum(0), self.squares[which].sum(0)
        mean = float(sums[index] / n)
        if n == 1:
            return Measure(mean)
        variance = max(0.0, float(squares[index]) - n * mean**2) / (n - 1)
        return Measure(mean, (variance / n) ** 0.5)
