r"""Gaussian blur as diffusion on the pixel grid: smooth in its width, down to no blur at all.

A Gaussian sampled at whole pixels stops working for small sigma: at 0.1 pixels its neighbouring tap is 2e-22,
and at 0 it is 0 / 0. The discrete analogue solves the heat equation on the grid instead,

    d/dt x = 1/2 (Laplacian of x),    reflecting borders,

and has variance t exactly, for every t >= 0. The cosine transform diagonalises the Laplacian, so

    blur_t(x) = D^T (exp(-t (lambda_k + lambda_l)) * (D x D^T)) D,    lambda_k = 1 - cos(pi k / n):

one transform of each image, one product and one inverse transform for each view, no kernel to truncate.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def _cosine_basis(n: int) -> tuple[Tensor, Tensor]:
    """Return the orthonormal cosine transform D of n pixels and the eigenvalues lambda."""
    k = torch.arange(n, dtype=torch.float64)
    D = torch.cos(math.pi / n * k[:, None] * (k + 0.5)) * math.sqrt(2 / n)
    D[0] /= math.sqrt(2)
    return D, 1 - torch.cos(math.pi / n * k)


def blur(x: Float[Tensor, "B C H W"], t: Float[Tensor, "B S"]) -> Float[Tensor, "B S C H W"]:
    """Blur every image S times."""
    (D_h, on_h), (D_w, on_w) = _cosine_basis(x.shape[-2]), _cosine_basis(x.shape[-1])
    D_h, D_w = D_h.to(x), D_w.to(x)
    decay = torch.expm1(-t[..., None, None] * (on_h[:, None] + on_w).to(t))
    spectrum = D_h @ x @ D_w.mT
    return x[:, None] + D_h.mT @ (decay[:, :, None] * spectrum[:, None]) @ D_w
