r"""Affine matrices from widths and noise: T = exp(sum_k eps_k eta_k G_k) (papers A, B: Eq. 3 and appendix E).

A generator of the affine group is [[M, t], [0, 0]] with M 2x2, so

    exp = [[e^M, phi(M) t], [0, 1]],    phi(M) = \int_0^1 e^{uM} du.

With m = tr(M) / 2, M_0 = M - m I traceless, and q = -det(M_0), M_0^2 = q I, hence

    e^{uM} = e^{um} (c(u^2 q) I + u s(u^2 q) M_0),    c(q) = cosh(sqrt q),  s(q) = sinh(sqrt q) / sqrt q,

both entire functions of q (cos and sin for q < 0). The integral is taken by ten Gauss-Legendre nodes, exact
to rounding for every norm that a width can have. No `torch.matrix_exp`: it is slower, and its gradient slower
still.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

GENERATORS = ("translate_x", "translate_y", "rotation", "scale_x", "scale_y", "shear")
"""Names of the six generators, in the papers' order."""

G = torch.tensor(
    [
        [[0, 0, 1], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 1], [0, 0, 0]],
        [[0, -1, 0], [1, 0, 0], [0, 0, 0]],
        [[1, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 1, 0], [0, 0, 0]],
        [[0, 1, 0], [1, 0, 0], [0, 0, 0]],
    ],
    dtype=torch.float64,
)
"""The generator matrices of paper B, appendix E."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_AT_ONE = torch.ones(1), torch.ones(1, 1)
_AT = torch.as_tensor([*(_NODES + 1) / 2, 1.0]), torch.as_tensor([*([0.0, w / 2] for w in _WEIGHTS), [1.0, 0.0]])
"""Points u of [0, 1], and the weights by which functions of them become their value at 1 and their integral."""
_SERIES_BELOW = 0.25
_SERIES_TERMS = 7


def cosh_and_sinhc(q: Float[Tensor, "*q"]) -> tuple[Float[Tensor, "*q"], Float[Tensor, "*q"]]:
    """Return c(q) = cosh(sqrt q) and s(q) = sinh(sqrt q) / sqrt q, smooth through q = 0."""
    return _values(q) if torch.compiler.is_compiling() else _CoshSinhc.apply(q)


def _series(q: Tensor, first: int, second: int) -> Tensor:
    """Return sum_j q^j / prod_{k <= j} (2k + first)(2k + second), one operation a term."""
    one = total = q.new_ones(())
    for k in range(_SERIES_TERMS, 0, -1):
        total = torch.addcmul(one, total, q, value=1 / ((2 * k + first) * (2 * k + second)))
    return total


def _values(q: Tensor) -> tuple[Tensor, Tensor]:
    # The elementary functions of r = sqrt |q|; near 0, where sqrt has no gradient, their Taylor series in q.
    near, above = q.abs() < _SERIES_BELOW, q > 0
    r, q_near = q.abs().masked_fill(near, 1.0).sqrt(), q.masked_fill(~near, 0.0)
    c, s = torch.where(above, r.cosh(), r.cos()), torch.where(above, r.sinh(), r.sin()) / r
    return torch.where(near, _series(q_near, -1, 0), c), torch.where(near, _series(q_near, 0, 1), s)


class _CoshSinhc(torch.autograd.Function):
    """c and s with c' = s / 2 and s' = (c - s) / 2q: a tenth of the operations that autograd would differentiate."""

    @staticmethod
    def forward(ctx: Any, q: Tensor) -> tuple[Tensor, Tensor]:
        c, s = _values(q)
        ctx.save_for_backward(q, c, s)
        return c, s

    @staticmethod
    def backward(ctx: Any, grad_c: Tensor, grad_s: Tensor) -> Tensor:
        q, c, s = ctx.saved_tensors
        near = q.abs() < _SERIES_BELOW
        close = _series(q.masked_fill(~near, 0.0), 0, 3) / 6
        slope = torch.where(near, close, (c - s) / (2 * q.masked_fill(near, 1.0)))
        return grad_c * s / 2 + grad_s * slope


def affine_matrices(
    eta: Float[Tensor, " K"], eps: Float[Tensor, "*batch K"], generators: Float[Tensor, "K 3 3"]
) -> Float[Tensor, "*batch 2 3"]:
    """Return the upper two rows of T = exp(sum_k eps_k eta_k G_k)."""
    X = ((eps * eta) @ generators[:, :2].flatten(1).to(eta)).unflatten(-1, (2, 3))
    M, t = X[..., :2], X[..., 2:]
    eye = torch.eye(2, dtype=X.dtype, device=X.device)
    general = torch.compiler.is_compiling()  # whose graphs cannot branch on the generators
    if not (general or generators[:, :2, :2].any()):
        return torch.cat([eye.expand_as(M), t], dim=-1)
    m = (M[..., :1, :1] + M[..., 1:, 1:]) / 2
    M_0 = M - m * eye
    q = M_0[..., :1, :1] ** 2 + M_0[..., :1, 1:] * M_0[..., 1:, :1]
    moves = bool(general or generators[:, :2, 2].any())
    u, weights = (v.to(X) for v in (_AT if moves else _AT_ONE))
    # e^{uM} = c I + s M_0 at all nodes at once: the last is u = 1, the sum over the others is phi.
    grown, q_u = (u * m).exp(), u**2 * q
    at_u = cosh_and_sinhc(q_u)
    c, s = (torch.stack([at_u[0], u * at_u[1]]) * grown @ weights)[..., None].unbind(0)
    linear = c[..., 0, :] * eye + s[..., 0, :] * M_0
    if moves:
        t = c[..., 1, :] * t + s[..., 1, :] * (M_0 @ t)
    return torch.cat([linear, t], dim=-1)


def inverse_affine(T: Float[Tensor, "*batch 2 3"]) -> Float[Tensor, "*batch 2 3"]:
    """Return the maps that undo the given ones."""
    adjugate = torch.stack([T[..., 1, 1], -T[..., 0, 1], -T[..., 1, 0], T[..., 0, 0]], dim=-1)
    A = adjugate.unflatten(-1, (2, 2)) / determinant(T)[..., None, None]
    return torch.cat([A, -A @ T[..., 2:]], dim=-1)


def determinant(T: Float[Tensor, "*batch 2 3"]) -> Float[Tensor, "*batch"]:
    """Return by how much each map scales areas."""
    return T[..., 0, 0] * T[..., 1, 1] - T[..., 0, 1] * T[..., 1, 0]


def image_coordinates(T: Float[Tensor, "*batch 2 3"], H: int, W: int) -> Float[Tensor, "*batch 2 3"]:
    """Bring maps from the coordinates of a square to those of an image, where each axis runs from -1 to 1.

    The square is as long as the image's shorter side, so that a rotation is rigid on images of any aspect.
    """
    if H == W:
        return T
    half = torch.tensor([W, H, min(H, W)]).to(T)
    return T * (half[None, :] / half[:2, None])
