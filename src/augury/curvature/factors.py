"""The algebra of Kronecker factors: factors in their eigenbases, and quadratic forms in the rows they are made of."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from augury.core.errors import RunError
from augury.curvature.structure import Statistics

Rows = dict[str, Float[Tensor, "groups m d"]]
"""Rows by the statistic that is the sum of their outer products."""


def _eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    # In float32 the routine may not converge where few data leave most eigenvalues at zero; in float64 it does.
    if not matrix.isfinite().all():
        raise RunError(
            "the curvature is not finite: the network's activations or gradients overflow. Lower the rate."
        )
    try:
        values, vectors = torch.linalg.eigh(matrix)
    except torch.linalg.LinAlgError:
        values, vectors = torch.linalg.eigh(matrix.double())
    return values, vectors.to(matrix)


@dataclass(frozen=True)
class Factor:
    """One symmetric factor in its eigenbasis; the leading axis is the groups of a convolution."""

    values: Float[Tensor, "groups d"]
    vectors: Float[Tensor, "groups d d"]

    @classmethod
    def of(cls, matrix: Float[Tensor, "groups d d"]) -> "Factor":
        """Decompose a positive semi-definite matrix; eigenvalues below zero are rounding and become zero.

        The eigenvalues are kept in float64: the log-determinant sums a million logarithms.
        """
        values, vectors = _eigh(matrix)
        return cls(values.clamp(min=0).double(), vectors)

    def with_values(self, values: Float[Tensor, "groups d"]) -> Float[Tensor, "groups d d"]:
        """Return the matrix with these eigenvalues and the same eigenvectors."""
        return (self.vectors * values[:, None, :].to(self.vectors)) @ self.vectors.mT


@dataclass(frozen=True)
class Pair:
    """A and G of one block; A is absent where the block is dense."""

    A: Factor | None
    G: Factor
    n: float

    def eigenvalues(self) -> Float[Tensor, "groups D O"]:
        """Return the eigenvalues of the block, a_j b_i / n."""
        if self.A is None:
            return self.G.values[:, None, :]
        return self.A.values[:, :, None] * self.G.values[:, None, :] / self.n


class _Quadratic(torch.autograd.Function):
    """sum r^T M r for symmetric M; its gradient 2 M r is already there when the value is."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, M: Tensor) -> Tensor:
        product = rows @ M
        ctx.save_for_backward(product)
        return (product * rows).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (product,) = ctx.saved_tensors
        return product * (2 * grad), None


def quadratic(rows: Rows, matrices: Statistics) -> Float[Tensor, ""]:
    """Return the sum of r^T M r over all rows of all statistics.

    Parameters
    ----------
    rows
        Rows by statistic; none gives 0.
    matrices
        A symmetric matrix for each.

    Returns
    -------
    Tensor
        The sum, differentiable once in the rows.
    """
    total = next(iter(matrices.values())).new_zeros(())
    for key, r in rows.items():
        total = total + _Quadratic.apply(r, matrices[key])
    return total
