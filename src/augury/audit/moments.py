"""Means and standard errors of values that come batch by batch, for every group of inputs at once.

Only counts, sums and sums of squares are kept, in float64: memory does not grow with the number of inputs.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from augury.records import Measure


class Moments:
    """Running moments of vectors, group by group."""

    def __init__(self, groups: int, *shape: int) -> None:
        self.n = torch.zeros(groups, dtype=torch.float64)
        self.sums = torch.zeros(groups, *shape, dtype=torch.float64)
        self.squares = torch.zeros(groups, *shape, dtype=torch.float64)

    def add(self, values: Float[Tensor, "B ..."], group: Int[Tensor, " B"]) -> None:
        """Take the values of a batch."""
        values, group = values.detach().cpu().double(), group.cpu()
        self.n.index_add_(0, group, torch.ones(len(group), dtype=torch.float64))
        self.sums.index_add_(0, group, values)
        self.squares.index_add_(0, group, values.square())

    def mean(self, group: int | None = None) -> Tensor:
        """Return the mean of one group, or of all inputs."""
        n, sums, _ = self._of(group)
        return sums / n

    def measure(self, index: tuple[int, ...], group: int | None = None) -> Measure | None:
        """Return the mean of one entry with its standard error over inputs."""
        n, sums, squares = self._of(group)
        if n == 0:
            return None
        mean = float(sums[index] / n)
        if n == 1:
            return Measure(mean)
        variance = max(0.0, float(squares[index]) - n * mean**2) / (n - 1)
        return Measure(mean, (variance / n) ** 0.5)

    def _of(self, group: int | None) -> tuple[float, Tensor, Tensor]:
        if group is None:
            return float(self.n.sum()), self.sums.sum(0), self.squares.sum(0)
        return float(self.n[group]), self.sums[group], self.squares[group]
