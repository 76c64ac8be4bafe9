"""The measures of a whole set, gathered batch by batch: overall, by strength and by class.

LI is relative to the spread of the logits, the mean squared distance between the logits of two different inputs:
2 tr Cov f(x). A view as far from its input as another input is has LI_relative = 1.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from augury.audit.measures import Comparison
from augury.audit.moments import Moments
from augury.audit.orbits import Orbit
from augury.records import Scores

LI, DI, AGREEMENT, SI = range(4)
"""Places of the measures in the moments; SI last, since not every model has one."""

CONSTANT = 1e-13
"""A spread of the logits below this share of their mean square is rounding in float32: the model is constant."""


class Tally:
    """Collects comparisons."""

    def __init__(self, orbit: Orbit, groups: int, probabilities: bool = True) -> None:
        self.membership = orbit.membership()
        self.by_class = Moments(groups, 1 + len(orbit.levels), 4)
        self.logits: Moments | None = None
        self.right = Moments(1, 2)
        self.probabilities, self.has_SI = probabilities, True

    def add(self, seen: Comparison, group: Int[Tensor, " B"], labelled: bool = False) -> None:
        """Take a batch."""
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

    @property
    def images(self) -> int:
        """How many inputs have been seen."""
        return int(self.by_class.n.sum())

    def accuracy(self) -> tuple[float | None, float | None]:
        """Return the share of right answers."""
        if not self.right.n.any():
            return None, None
        plain, moved = self.right.mean().tolist()
        return plain, moved

    def spread(self) -> float:
        """Return the mean squared distance between the logits of two inputs."""
        assert self.logits is not None
        n, mean = self.images, self.logits.mean()
        square = float((self.logits.squares[0] / n).sum())
        variance = max(0.0, square - float(mean.square().sum()))
        size = float((mean + self.shift.cpu()).square().sum()) + variance
        return 0.0 if variance <= CONSTANT * size else 2 * variance * n / (n - 1)

    def scores(
        self, level: int | None = None, group: int | None = None, spread: float | None = None
    ) -> Scores | None:
        """Return the measures of all inputs or of one class, over all views or those of one strength."""
        at = 0 if level is None else 1 + level
        error = self.by_class.measure((at, LI), group)
        if error is None:
            return None
        spread = self.spread() if spread is None else spread
        return Scores(
            LI=error,
            LI_relative=error.value / spread if spread else None,
            DI=self.by_class.measure((at, DI), group) if self.probabilities else None,
            SI=self.by_class.measure((at, SI), group) if self.has_SI else None,
            agreement=self.by_class.measure((at, AGREEMENT), group) if self.probabilities else None,
            images=self.images if group is None else int(self.by_class.n[group]),
        )
