"""Slow twins of the warp and its matrices: every step as its definition has it."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def affine_grid_warp(x: Tensor, T: Tensor) -> Tensor:
    """Copy every image S times; then torch's own grid and sampling."""
    (B, C, H, W), S = x.shape, T.shape[1]
    copies = x[:, None].expand(B, S, C, H, W).reshape(B * S, C, H, W)
    grid = F.affine_grid(T.reshape(B * S, 2, 3), [B * S, C, H, W], align_corners=False)
    views = F.grid_sample(copies, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return views.view(B, S, C, H, W)


def pixel_by_pixel_warp(image: Tensor, T: Tensor) -> Tensor:
    """Sample one image [H, W] through one map, by four neighbours of every point."""
    H, W = image.shape
    out = torch.zeros_like(image)
    for i in range(H):
        for j in range(W):
            point = torch.tensor([(2 * j + 1) / W - 1, (2 * i + 1) / H - 1, 1.0], dtype=image.dtype)
            u, v = T.to(image) @ point
            column, row = ((u + 1) * W - 1).item() / 2, ((v + 1) * H - 1).item() / 2
            for r in (math.floor(row), math.floor(row) + 1):
                for c in (math.floor(column), math.floor(column) + 1):
                    if 0 <= r < H and 0 <= c < W:
                        out[i, j] += image[r, c] * (1 - abs(row - r)) * (1 - abs(column - c))
    return out


def matrix_exp_affine(eta: Tensor, eps: Tensor, generators: Tensor) -> Tensor:
    """Return T = exp(sum_k eps_k eta_k G_k), upper two rows, by torch's general matrix exponential."""
    return torch.matrix_exp(torch.einsum("...k,kij->...ij", eps * eta, generators))[..., :2, :]


def adjoint_weights(weight: Tensor, T: Tensor) -> Tensor:
    """Return the exact transpose: W_T with <W_T, x> = <W, warp(x, T)> for every x, interpolation included."""
    x = torch.zeros_like(weight, requires_grad=True)
    views = affine_grid_warp(x, T.expand(len(weight), 1, 2, 3))[:, 0]
    return torch.autograd.grad(views, x, weight)[0]
