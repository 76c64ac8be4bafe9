"""The algebra of Kronecker factors: sums of outer products, their eigenbases, and pairs A (x) G / n.

A factor R^T R stays rows R while they are fewer than its dimension: R^T R and R R^T share their nonzero eigenvalues,
and the smaller of the two is decomposed. With the 500 data of an evidence step and a layer of 1,000 units that is an
eighth of the work.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from augury.core.errors import RunError
from augury.core.world import World

STRIPS = 4
"""A Gram matrix is symmetric: computed in four strips from the diagonal on, it takes five eighths of the products."""


def gram(rows: Float[Tensor, "groups m d"]) -> Float[Tensor, "groups d d"]:
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


def _eigh(matrix: Tensor, vectors: bool) -> tuple[Tensor, Tensor | None]:
    # In float32 the routine may not converge where few data leave most eigenvalues at zero, or report success and
    # return NaN; in float64 it converges.
    if not matrix.isfinite().all():
        raise RunError("the curvature is not finite: the network's activations or gradients overflow. Lower the rate.")

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
    """All eigenvalues, in float64, because the log-determinant sums a million logarithms; the zeros without a vector
    come last."""
    vectors: Float[Tensor, "groups d r"] | None
    """The eigenvectors, at least those of the nonzero eigenvalues; None if only values were computed."""

    @classmethod
    def of(cls, matrix: Float[Tensor, "groups d d"], vectors: bool = True) -> "Factor":
        """Decompose a positive semi-definite matrix; eigenvalues below zero are rounding and become zero."""
        values, found = _eigh(matrix, vectors)
        return cls(values.clamp(min=0).double(), found)

    @classmethod
    def of_rows(cls, rows: Float[Tensor, "groups m d"], vectors: bool = True) -> "Factor":
        """Decompose R^T R through the smaller R R^T = U k U^T: the vectors are R^T U / sqrt(k)."""
        _, m, d = rows.shape
        k, U = _eigh(rows @ rows.mT, vectors)
        noise = m * torch.finfo(rows.dtype).eps * k[:, -1:]
        k = torch.where(k > noise, k, 0.0)
        values = torch.nn.functional.pad(k.double(), (0, d - m))
        if U is None:
            return cls(values, None)
        return cls(values, rows.mT @ (U * torch.where(k > 0, k.rsqrt(), 0.0).to(U)[:, None, :]))

    @property
    def leading(self) -> Float[Tensor, "groups r"]:
        """The eigenvalues that have a vector."""
        return self.values if self.vectors is None else self.values[:, : self.vectors.shape[2]]

    def with_values(self, values: Float[Tensor, "groups d"]) -> Float[Tensor, "groups d d"]:
        """Return the matrix with the same vectors and these eigenvalues (equal where the old ones are zero)."""
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
class OuterSum:
    """A sum of outer products R^T R per group: rows R, or, from as many rows as dimensions on, the matrix."""

    parts: tuple[Float[Tensor, "groups _ d"], ...] = ()  # rows, batch by batch
    summed: Float[Tensor, "groups d d"] | None = None  # the sum of earlier rows, once there were too many
    n: float = 0.0  # number of rows, scaled as the matrix is

    @classmethod
    def of(cls, rows: Float[Tensor, "groups m d"]) -> "OuterSum":
        return cls((rows,), None, float(rows.shape[1]))

    def __add__(self, other: "OuterSum") -> "OuterSum":
        parts = (*self.parts, *other.parts)
        sums = [s for s in (self.summed, other.summed) if s is not None]
        if parts and sum(p.shape[1] for p in parts) >= parts[0].shape[2]:
            sums, parts = [*sums, gram(torch.cat(parts, dim=1))], ()
        return OuterSum(parts, sum(sums[1:], sums[0]) if sums else None, self.n + other.n)

    def __mul__(self, scale: float) -> "OuterSum":
        summed = None if self.summed is None else self.summed * scale
        return OuterSum(tuple(p * scale**0.5 for p in self.parts), summed, self.n * scale)

    def matrix(self) -> Float[Tensor, "groups d d"]:
        sums = [] if self.summed is None else [self.summed]
        if self.parts:
            sums.append(gram(torch.cat(self.parts, dim=1)))
        return sum(sums[1:], sums[0])

    def inner(self, M: Float[Tensor, "groups d d"]) -> Float[Tensor, ""]:
        """Return <R^T R, M> as the sum of r^T M r over the rows, for symmetric M: no outer product is formed."""
        return torch.stack([_Quadratic.apply(rows, M) for rows in self.parts]).sum()

    def factor(self, vectors: bool = True) -> Factor:
        """Return the matrix in its eigenbasis, or its eigenvalues alone, which take a third of the time."""
        if self.summed is None and self.shape[1] < self.shape[2]:
            return Factor.of_rows(torch.cat(self.parts, dim=1), vectors)
        return Factor.of(self.matrix(), vectors)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Groups, rows of the smaller matrix, and dimensions."""
        groups, _, d = self.parts[0].shape if self.summed is None else self.summed.shape
        return groups, d if self.summed is not None else min(d, sum(p.shape[1] for p in self.parts)), d

    def over(self, world: World) -> "OuterSum":
        """Return the sum over all processes: their rows while these are few, else the sum of their matrices."""
        _, m, d = self.shape
        rows, n = world.sums([m, self.n])
        if rows < d:
            return OuterSum((world.gather(torch.cat(self.parts, dim=1), dim=1),), None, n)
        matrix = self.matrix().clone()
        world.sum_([matrix])
        return OuterSum((), matrix, n)


def decomposed(sums: dict[str, OuterSum], vectors: bool, world: World) -> dict[str, Factor]:
    """Decompose every matrix on one process, the largest first on the one with least to do, and tell all others."""
    if world.size == 1:
        return {key: total.factor(vectors) for key, total in sums.items()}
    work, owner = [0.0] * world.size, {}
    for key in sorted(sums, key=lambda key: -sums[key].shape[1]):
        owner[key] = work.index(min(work))
        work[owner[key]] += sums[key].shape[0] * sums[key].shape[1] ** 3
    found = {key: sums[key].factor(vectors) if owner[key] == world.rank else _blank(sums[key], vectors) for key in sums}
    for process in range(world.size):
        ours = [found[key] for key in sums if owner[key] == process]
        world.same_([t for f in ours for t in (f.values, f.vectors) if t is not None], process)
    return found


def _blank(total: OuterSum, vectors: bool) -> Factor:
    groups, r, d = total.shape
    like = total.parts[0] if total.summed is None else total.summed
    values = like.new_zeros(groups, d, dtype=torch.float64)
    return Factor(values, like.new_zeros(groups, d, r) if vectors else None)


class _Quadratic(torch.autograd.Function):
    """sum r^T M r for symmetric M; its gradient 2 M r is known as soon as the value is."""

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


@dataclass(frozen=True)
class KronBlock:
    """The block A (x) G / n, or G alone (dense)."""

    A: Factor | None
    G: Factor
    n: float = 1.0

    def eigenvalues(self) -> Float[Tensor, "groups D O"]:
        if self.A is None:
            return self.G.values[:, None, :]
        return self.A.values[:, :, None] * self.G.values[:, None, :] / self.n

    def logdet(self, delta: Float[Tensor, ""], scale: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Return the sum of log(scale a_j b_i / n + delta), all pairs known to be zero in one term."""
        if self.A is None:
            return (scale * self.G.values + delta).log().sum()
        a, b = self.A.leading, self.G.leading
        products = a[:, :, None] * b[:, None, :] / self.n
        zeros = self.A.values.shape[1] * self.G.values.numel() - products.numel()
        return (scale * products + delta).log().sum() + zeros * delta.log()
