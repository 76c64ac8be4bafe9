"""The algebra of Kronecker factors: factors in their eigenbases, and quadratic forms in the rows they are made of.

A sum of outer products R^T R that stays rows R while they are fewer than its dimension.

R^T R and R R^T share their eigenvalues but zero, and the smaller of the two is decomposed: with the 500 data of a step
up the evidence and a layer of 1,000 units that is an eighth of the work.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from augury.core.errors import RunError
from augury.curvature.structure import Statistics

Rows = dict[str, Float[Tensor, "groups m d"]]
"""Rows by the statistic that is the sum of their outer products."""


STRIPS = 4
"""A Gram matrix is symmetric: computed in four strips from the diagonal on, it takes five eighths of the products."""


def gram(rows: Float[Tensor, "groups m d"]) -> Float[Tensor, "groups d d"]:
    """Return the sum of the rows' outer products."""
    d = rows.shape[2]
    if d < 64 * STRIPS or rows.requires_grad:
        return rows.mT @ rows
    out = rows.new_empty(rows.shape[0], d, d)
    edges = [d * k // STRIPS for k in range(STRIPS + 1)]
    for a, b in pairwise(edges):
        strip = rows[:, :, a:b].mT @ rows[:, :, a:]
        out[:, a:b, a:] = strip
        out[:, b:, a:b] = strip[:, :, b - a :].mT
    return out


def _eigh(matrix: Tensor, vectors: bool = True) -> tuple[Tensor, Tensor | None]:
    # In float32 the routine may not converge where few data leave most eigenvalues at zero, or say that it did and
    # return NaN; in float64 it converges.
    if not matrix.isfinite().all():
        raise RunError(
            "the curvature is not finite: the network's activations or gradients overflow. Lower the rate."
        )

    def decompose(matrix: Tensor) -> tuple[Tensor, Tensor | None]:
        return torch.linalg.eigh(matrix) if vectors else (torch.linalg.eigvalsh(matrix), None)

    try:
        values, found = decompose(matrix)
        converged = bool(values.isfinite().all())
    except torch.linalg.LinAlgError:
        converged = False
    if not converged:
        values, found = decompose(matrix.double())
    return values, None if found is None else found.to(matrix)


@dataclass(frozen=True)
class Factor:
    """One symmetric factor in its eigenbasis; the leading axis is the groups of a convolution."""

    values: Float[Tensor, "groups d"]
    """All eigenvalues; where there are fewer vectors, theirs come first and the others are zero."""
    vectors: Float[Tensor, "groups d r"] | None
    """The eigenvectors, or those of all eigenvalues but zero; none where only values were asked for."""

    @classmethod
    def of(cls, matrix: Float[Tensor, "groups d d"], vectors: bool = True) -> "Factor":
        """Decompose a positive semi-definite matrix; eigenvalues below zero are rounding and become zero.

        The eigenvalues are kept in float64: the log-determinant sums a million logarithms.
        """
        values, found = _eigh(matrix, vectors)
        return cls(values.clamp(min=0).double(), found)

    @classmethod
    def of_rows(cls, rows: Float[Tensor, "groups m d"], vectors: bool = True) -> "Factor":
        """Decompose R^T R by way of the smaller R R^T = U k U^T: the vectors are R^T U / sqrt(k)."""
        _, m, d = rows.shape
        k, U = _eigh(rows @ rows.mT, vectors)
        noise = m * torch.finfo(rows.dtype).eps * k[:, -1:]
        k = torch.where(k > noise, k, 0.0)
        values = torch.nn.functional.pad(k.double(), (0, d - m))
        if U is None:
            return cls(values, None)
        return cls(values, rows.mT @ (U * torch.where(k > 0, k.rsqrt(), 0.0)[:, None, :]))

    @property
    def leading(self) -> Float[Tensor, "groups r"]:
        """The eigenvalues without those that are zero for want of rows."""
        return self.values if self.vectors is None else self.values[:, : self.vectors.shape[2]]

    def with_values(self, values: Float[Tensor, "groups d"]) -> Float[Tensor, "groups d d"]:
        """Return the matrix with these eigenvalues, equal where the old ones are zero, and the same eigenvectors."""
        if self.vectors is None:
            raise RunError("this factor was decomposed for its eigenvalues alone.")
        V = self.vectors
        values = values.to(V)
        if V.shape[2] == V.shape[1]:
            return (V * values[:, None, :]) @ V.mT
        null = values[:, -1, None]
        matrix = (V * (values[:, : V.shape[2]] - null)[:, None, :]) @ V.mT
        matrix.diagonal(dim1=1, dim2=2).add_(null)
        return matrix


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

    def logdet(self, delta: Float[Tensor, ""], scale: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Return the sum of log(scale a_j b_i / n + delta), the pairs that are zero for want of rows in one term."""
        if self.A is None:
            return (scale * self.G.values + delta).log().sum()
        a, b = self.A.leading, self.G.leading
        products = a[:, :, None] * b[:, None, :] / self.n
        zeros = self.A.values.shape[1] * self.G.values.numel() - products.numel()
        return (scale * products + delta).log().sum() + zeros * delta.log()


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
    """Return the sum of r^T M r over all rows of all statistics."""
    total = next(iter(matrices.values())).new_zeros(())
    for key, r in rows.items():
        total = total + _Quadratic.apply(r, matrices[key])
    return total


@dataclass(frozen=True)
class Outer:
    """A positive semi-definite matrix per group, as rows or, from as many rows as dimensions on, as itself."""

    parts: tuple[Float[Tensor, "groups _ d"], ...] = ()
    """Rows, batch by batch."""
    summed: Float[Tensor, "groups d d"] | None = None
    """What earlier rows have been summed up to, once there were too many."""

    def __add__(self, other: "Outer") -> "Outer":
        parts = (*self.parts, *other.parts)
        sums = [s for s in (self.summed, other.summed) if s is not None]
        if parts and sum(p.shape[1] for p in parts) >= parts[0].shape[2]:
            rows = torch.cat(parts, dim=1)
            sums, parts = [*sums, gram(rows)], ()
        return Outer(parts, torch.stack(sums).sum(0) if len(sums) > 1 else (sums[0] if sums else None))

    def __mul__(self, scale: float) -> "Outer":
        return Outer(
            tuple(p * scale**0.5 for p in self.parts), None if self.summed is None else self.summed * scale
        )

    def matrix(self) -> Float[Tensor, "groups d d"]:
        """Return the matrix."""
        sums = [] if self.summed is None else [self.summed]
        if self.parts:
            rows = torch.cat(self.parts, dim=1)
            sums.append(gram(rows))
        return torch.stack(sums).sum(0)

    def factor(self, vectors: bool = True) -> Factor:
        """Return the matrix in its eigenbasis, or its eigenvalues alone, which take a third of the time."""
        if self.summed is None:
            rows = torch.cat(self.parts, dim=1)
            if rows.shape[1] < rows.shape[2]:
                return Factor.of_rows(rows, vectors)
        return Factor.of(self.matrix(), vectors)
