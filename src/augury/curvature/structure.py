"""What every structure of the curvature H has in common: statistics that add up over data, and a log-determinant.

A structure turns a recorded pass into statistics T = sum_n T_n: Kronecker factors, a diagonal, or H itself. The
log-determinant is a function of the totals alone, so its gradient in anything behind the data (paper A, Eq. 16) is

    d log|H| = sum_n < d log|H| / dT , d T_n >,

the *preconditioner* d log|H| / dT once from the totals, without a graph, and dT_n batch by batch, with one.

H = scale * GGN + delta: `scale` is the precision of the observation noise in regression and 1 in classification.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError, choose
from augury.curvature.layers import POSITIONS
from augury.curvature.tape import Tape

PRIORS = ("scalar", "layer", "tensor")
"""One prior precision for all, one per layer, or one per parameter tensor."""

Statistics = dict[str, Tensor]
Collected = dict[str, Any]
"""Statistics in whatever form is cheap to add up and to scale; tensors unless a structure has a better one."""


@dataclass(frozen=True)
class Block:
    """A block of H: some parameters that share a prior precision."""

    name: str
    layer: str
    parameters: tuple[Tensor, ...]


class Structure(ABC):
    """One structure of H for one network; a final class per file."""

    def __init__(
        self, layers: dict[str, nn.Module], prior: str = "scalar", positions: str = "reduce"
    ) -> None:
        self.layers = layers
        self.prior = choose("prior", prior, PRIORS)
        self.positions = choose("positions", positions, POSITIONS)
        self.blocks = self.make_blocks()

    @abstractmethod
    def make_blocks(self) -> list[Block]:
        """Return the blocks of H, in the order in which `spectrum` gives their eigenvalues."""

    @abstractmethod
    def inputs(self, tape: Tape) -> Statistics:
        """Return the statistics that need no output gradient."""

    @abstractmethod
    def outputs(self, tape: Tape, grads: dict[str, list[Tensor]]) -> Statistics:
        """Return the statistics of one column of the output curvature; they add up over columns."""

    def collect_inputs(self, tape: Tape) -> Collected:
        """Return the statistics of `inputs` in the form that `decompose` likes best."""
        return self.inputs(tape)

    def collect_outputs(self, tape: Tape, grads: dict[str, list[Tensor]]) -> Collected:
        """Return the statistics of `outputs` in the form that `decompose` likes best."""
        return self.outputs(tape, grads)

    @abstractmethod
    def decompose(self, totals: Collected, vectors: bool = True) -> Any:
        """Return whatever makes the log-determinant a closed form: eigenvalues, and unless told eigenvectors."""

    @abstractmethod
    def logdet(
        self, spectrum: Any, delta: Float[Tensor, " L"], scale: Float[Tensor, ""]
    ) -> Float[Tensor, ""]:
        """Return log|scale * GGN + delta|, differentiable in delta and scale."""

    @abstractmethod
    def preconditioner(
        self, spectrum: Any, delta: Float[Tensor, " L"], scale: Float[Tensor, ""]
    ) -> Statistics:
        """Return d log|H| / dT for every statistic T."""

    def inner_inputs(self, tape: Tape, preconditioner: Statistics) -> Float[Tensor, ""]:
        """Return the inner product of the preconditioner with the statistics of `inputs`."""
        return inner(self.inputs(tape), preconditioner)

    def inner_outputs(
        self, tape: Tape, grads: dict[str, list[Tensor]], preconditioner: Statistics
    ) -> Float[Tensor, ""]:
        """Return the inner product of the preconditioner with the statistics of `outputs`."""
        return inner(self.outputs(tape, grads), preconditioner)

    @property
    def n_delta(self) -> int:
        """How many prior precisions there are."""
        return 1 if self.prior == "scalar" else len(self.delta_names)

    @property
    def delta_names(self) -> list[str]:
        """What each prior precision belongs to."""
        if self.prior == "scalar":
            return ["all"]
        return list(dict.fromkeys(b.layer if self.prior == "layer" else b.name for b in self.blocks))

    def delta_of_blocks(self, delta: Float[Tensor, " L"]) -> list[Float[Tensor, ""]]:
        """Return the prior precision of each block."""
        if len(delta) != self.n_delta:
            raise InputError(
                f"prior='{self.prior}' has {self.n_delta} precisions for this network; got {len(delta)}. "
                f"`delta_names` says what each belongs to."
            )
        if self.prior == "scalar":
            return [delta[0]] * len(self.blocks)
        index = {name: k for k, name in enumerate(self.delta_names)}
        return [delta[index[b.layer if self.prior == "layer" else b.name]] for b in self.blocks]

    def log_prior(self, delta: Float[Tensor, " L"]) -> Float[Tensor, ""]:
        """Return log p(theta) without its 2 pi: that of the Laplace determinant cancels it."""
        terms = []
        for block, d in zip(self.blocks, self.delta_of_blocks(delta), strict=True):
            theta = torch.cat([p.detach().flatten() for p in block.parameters]).to(delta)
            terms.append((len(theta) * d.log() - d * (theta @ theta)) / 2)
        return torch.stack(terms).sum()


def added(parts: Sequence[Collected]) -> Collected:
    """Return the sum of statistics, entry by entry."""
    total: Collected = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total


def inner(statistics: Statistics, preconditioner: Statistics) -> Float[Tensor, ""]:
    """Return the inner product of statistics with their part of the preconditioner."""
    total = next(iter(preconditioner.values())).new_zeros(())
    for name, T in statistics.items():
        if name in preconditioner:
            total = total + (T * preconditioner[name]).sum()
    return total
