r"""Affine matrices from widths and noise: T = exp(sum_k eps_k eta_k G_k) (papers A, B: Eq. 3 and appendix E).

A generator of the affine group is [[M, t], [0, 0]] with M 2x2, so

    exp = [[e^M, phi(M) t], [0, 1]],    phi(M) = \int_0^1 e^{uM} du.

With m = tr(M) / 2, M_0 = M - m I traceless, and q = -det(M_0), M_0^2 = q I, hence

    e^{uM} = e^{um} (c(u^2 q) I + u s(u^2 q) M_0),    c(q) = cosh(sqrt q),  s(q) = sinh(sqrt q) / sqrt q,

both entire functions of q (cos and sin for q < 0). The integral is taken by ten Gauss-Legendre nodes, exact
to rounding for every norm that a width can have. No `torch.matrix_exp`: it is slower, and its gradient slower
still.
"""

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
_SERIES_BELOW = 0.25
_SERIES_TERMS = 8


def cosh_sqrt(q: Float[Tensor, "*q"]) -> Float[Tensor, "*q"]:
    """Return c(q) = cosh(sqrt q), smooth through q = 0."""
    return _entire(q, torch.cosh, torch.cos, shift=0)


def sinhc_sqrt(q: Float[Tensor, "*q"]) -> Float[Tensor, "*q"]:
    """Return s(q) = sinh(sqrt q) / sqrt q, smooth through q = 0."""
    return _entire(q, lambda r: torch.sinh(r) / r, lambda r: torch.sin(r) / r, shift=1)


def _entire(q: Tensor, positive, negative, shift: int) -> Tensor:  # type: ignore[no-untyped-def]
    # The elementary function of r = sqrt |q|; near 0, where sqrt has no gradient, its Taylor series in q.
    near = q.abs() < _SERIES_BELOW
    r = torch.where(near, 1.0, q.abs()).sqrt()
    q_near = torch.where(near, q, 0.0)
    series = torch.ones_like(q)
    for k in range(_SERIES_TERMS, 0, -1):
        series = 1 + series * q_near / ((2 * k + shift - 1) * (2 * k + shift))
    return torch.where(near, series, torch.where(q > 0, positive(r), negative(r)))


def affine_matrices(
    eta: Float[Tensor, " K"], eps: Float[Tensor, "*batch K"], generators: Float[Tensor, "K 3 3"]
) -> Float[Tensor, "*batch 2 3"]:
    """Return the upper two rows of T = exp(sum_k eps_k eta_k G_k)."""
    X = torch.einsum("...k,kij->...ij", eps * eta, generators[:, :2].to(eta))
    M, t = X[..., :2], X[..., 2]
    general = torch.compiler.is_compiling()  # whose graphs cannot branch on the generators
    has_linear = general or bool(generators[:, :2, :2].any())
    linear, q, m, M_0 = _exp_2x2(M, has_linear)
    if general or (has_linear and generators[:, :2, 2].any()):
        t = _phi_times(t, q, m, M_0)
    return torch.cat([linear, t[..., None]], dim=-1)


def _exp_2x2(M: Tensor, has_linear: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    eye = torch.eye(2, dtype=M.dtype, device=M.device)
    m = (M[..., 0, 0] + M[..., 1, 1]) / 2
    M_0 = M - m[..., None, None] * eye
    q = M_0[..., 0, 0] ** 2 + M_0[..., 0, 1] * M_0[..., 1, 0]
    if not has_linear:
        return eye.expand_as(M), q, m, M_0
    c, s = cosh_sqrt(q), sinhc_sqrt(q)
    exp = m.exp()[..., None, None] * (c[..., None, None] * eye + s[..., None, None] * M_0)
    return exp, q, m, M_0


def _phi_times(t: Tensor, q: Tensor, m: Tensor, M_0: Tensor) -> Tensor:
    u = torch.as_tensor((_NODES + 1) / 2).to(t)
    weight = torch.as_tensor(_WEIGHTS / 2).to(t) * (u * m[..., None]).exp()
    q_u = u**2 * q[..., None]
    on_eye = (weight * cosh_sqrt(q_u)).sum(-1)
    on_M_0 = (weight * u * sinhc_sqrt(q_u)).sum(-1)
    return on_eye[..., None] * t + on_M_0[..., None] * (M_0 @ t[..., None])[..., 0]


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
