"""The interface of every structure of the curvature H: statistics that add up over data, and a log-determinant.

A structure turns a recorded pass into statistics T = sum_n T_n: Kronecker factors, a diagonal, or H itself. The
log-determinant is a function of the totals alone, so its gradient in anything behind the data (paper A, Eq. 16) is

    d log|H| = sum_n < d log|H| / dT , d T_n >,

the *preconditioner* d log|H| / dT once from the totals, without a graph, and dT_n batch by batch, with one.

H = scale * GGN + delta: `scale` is the precision of the observation noise in regression and 1 in classification.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError, choose
from augury.core.world import ALONE, World
from augury.curvature.factors import OuterSum
from augury.curvature.layers import POSITIONS
from augury.curvature.tape import Gradients, Tape

PRIORS = ("scalar", "layer", "tensor")
"""One prior precision for all, one per layer, or one per parameter tensor."""

Deltas = Float[Tensor, " L"]
Scalar = Float[Tensor, ""]
Statistics = dict[str, Any]  # by name, what can be added and scaled: tensors, or matrices kept as `OuterSum`


@dataclass(frozen=True)
class Block:
    """A block of H: parameters that share a prior precision."""

    name: str
    layer: str
    parameters: tuple[Tensor, ...]


class Structure(ABC):
    """One structure of H for one network."""

    def __init__(self, layers: dict[str, nn.Module], prior: str = "scalar", positions: str = "reduce") -> None:
        self.layers = layers
        self.prior = choose("prior", prior, PRIORS)
        self.positions = choose("positions", positions, POSITIONS)
        self.blocks = self.make_blocks()

    @abstractmethod
    def make_blocks(self) -> list[Block]:
        """Return the blocks of H."""

    def inputs(self, tape: Tape) -> Statistics:
        """Return the statistics that need no output gradient."""
        return {}

    def of_inputs(self, name: str) -> bool:
        """Return whether the statistic of this name is one of them."""
        return False

    @abstractmethod
    def outputs(self, tape: Tape, grads: Gradients) -> Statistics:
        """Return the statistics of one column of the output curvature; they add up over columns."""

    @abstractmethod
    def decompose(self, totals: Statistics, vectors: bool = True, world: World = ALONE) -> Any:
        """Return what makes the log-determinant a closed form; without vectors, the preconditioner is not available."""

    @abstractmethod
    def logdet(self, spectrum: Any, delta: Deltas, scale: Scalar) -> Scalar:
        """Return log|scale * GGN + delta|, differentiable in delta and scale."""

    @abstractmethod
    def preconditioner(self, spectrum: Any, delta: Deltas, scale: Scalar) -> dict[str, Tensor]:
        """Return d log|H| / dT for every statistic T."""

    @property
    def n_delta(self) -> int:
        return len(self.delta_names)

    @property
    def delta_names(self) -> list[str]:
        """The layer or parameter of each prior precision, or "all"."""
        return list(dict.fromkeys(self._owner(block) for block in self.blocks))

    def _owner(self, block: Block) -> str:
        return {"scalar": "all", "layer": block.layer, "tensor": block.name}[self.prior]

    def delta_of_blocks(self, delta: Deltas) -> list[Scalar]:
        if len(delta) != self.n_delta:
            raise InputError(
                f"prior='{self.prior}' has {self.n_delta} precisions for this network; got {len(delta)}. "
                f"`delta_names` says what each belongs to."
            )
        index = {name: k for k, name in enumerate(self.delta_names)}
        return [delta[index[self._owner(block)]] for block in self.blocks]

    def log_prior(self, delta: Deltas) -> Scalar:
        """Return log p(theta) without its 2 pi: that of the Laplace determinant cancels it."""
        terms = []
        for block, d in zip(self.blocks, self.delta_of_blocks(delta), strict=True):
            theta = torch.cat([p.detach().flatten() for p in block.parameters]).to(delta)
            terms.append((len(theta) * d.log() - d * (theta @ theta)) / 2)
        return torch.stack(terms).sum()


def added(total: Statistics, part: Statistics) -> Statistics:
    return total | {name: total[name] + T if name in total else T for name, T in part.items()}


def over(statistics: Statistics, world: World) -> Statistics:
    """Return sums over all processes."""
    if world.size == 1:
        return statistics
    summed = {name: T.over(world) if isinstance(T, OuterSum) else T.clone() for name, T in statistics.items()}
    world.sum_(T for T in summed.values() if isinstance(T, Tensor))
    return summed


def inner(statistics: Statistics, preconditioner: dict[str, Tensor]) -> Scalar:
    """Return the inner product of statistics with their part of the preconditioner."""
    total = next(iter(preconditioner.values())).new_zeros(())
    for name, T in statistics.items():
        M = preconditioner[name]
        total = total + (T.inner(M) if isinstance(T, OuterSum) else (T * M).sum())
    return total
