"""Pixels from matrices: bilinear sampling of every image at the points T p, for all S samples of it at once.

`views[b, s](p) = x[b](T[b, s] p)`, p in the coordinates of `F.affine_grid(align_corners=False)`: -1 and 1 are
the outer edges of the image, x to the right, y downward; outside is 0. So T = rotation by +90 degrees is
`rot90(k=1)`.

Faster than `affine_grid` + `grid_sample` on repeated images, for three reasons. The S grids of an image are stacked
along its height: the image is never copied S times. All grids are one matrix product, T as [B S, 6] times a fixed
[6, 2 H W], and the gradient in T is its transpose. And images are taken a few at a time, so that the grids stay in
the cache; they are rebuilt in the backward pass, which therefore remembers nothing but x and T.
"""

from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

_PART_BYTES = 2**24
"""Grid and views of one part of a batch, per thread: larger parts miss the cache, smaller ones wait for threads."""


def pixel_centres(n: int, like: Tensor) -> Float[Tensor, "{n}"]:
    """Return the coordinates of the centres of n pixels spanning [-1, 1]."""
    return (torch.arange(n, dtype=like.dtype, device=like.device) * 2 + 1) / n - 1


def _grid_basis(H: int, W: int, like: Tensor) -> Tensor:
    """Return the matrix [6, 2 H W] that takes the six entries of T to the grid [H, W, 2] of the points T p."""
    if torch.compiler.is_compiling():
        return _make_basis(H, W, like)
    return _kept_basis(H, W, like.dtype, like.device)


@lru_cache(maxsize=8)
def _kept_basis(H: int, W: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # or no later gradient could use it
        return _make_basis(H, W, torch.empty(0, dtype=dtype, device=device))


def _make_basis(H: int, W: int, like: Tensor) -> Tensor:
    ys, xs = torch.meshgrid(pixel_centres(H, like), pixel_centres(W, like), indexing="ij")
    p = torch.stack([xs, ys, torch.ones_like(xs)]).flatten(1)
    basis = p.new_zeros(2, 3, H * W, 2)
    basis[0, :, :, 0], basis[1, :, :, 1] = p, p
    return basis.view(6, 2 * H * W)


def _grid(T: Tensor, basis: Tensor, H: int) -> Tensor:
    B, S = T.shape[:2]
    return (T.reshape(B * S, 6) @ basis).view(B, S * H, -1, 2)


def _parts(x: Tensor, S: int) -> list[slice]:
    """Cut the batch so that the grid and the views of a part fit the cache; a GPU takes it whole."""
    B, C, H, W = x.shape
    bytes_per_image = S * H * W * (2 + C) * x.element_size()
    threads = torch.get_num_threads()
    n = threads * max(1, _PART_BYTES // bytes_per_image) if x.device.type == "cpu" else max(B, 1)
    return [slice(start, start + n) for start in range(0, B, n)]


class _Warp(torch.autograd.Function):
    """Forward and first derivative by hand; the latter in differentiable steps, so that a second one exists."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, T: Tensor) -> Tensor:
        (B, C, H, W), S = x.shape, T.shape[1]
        ctx.save_for_backward(x, T)
        parts = _parts(x, S)
        if len(parts) == 1:
            return _whole(x, T)
        views = x.new_empty(B, S, C, H, W)
        for part in parts:
            views[part] = _whole(x[part], T[part])
        return views

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, T = ctx.saved_tensors
        needs = ctx.needs_input_grad
        basis = _grid_basis(x.shape[-2], x.shape[-1], T)
        parts = [_backward(x[p], T[p], grad[p], basis, needs) for p in _parts(x, T.shape[1])]
        grads_x, grads_T = zip(*parts, strict=True)
        return torch.cat(grads_x) if needs[0] else None, torch.cat(grads_T) if needs[1] else None


def _backward(
    x: Tensor, T: Tensor, grad: Tensor, basis: Tensor, needs: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor | None]:
    (B, C, H, W), S = x.shape, T.shape[1]
    grid = _grid(T, basis, H)
    grad = grad.transpose(1, 2).reshape(B, C, S * H, W)
    grad_x, grad_grid = torch.ops.aten.grid_sampler_2d_backward(grad, x, grid, 0, 0, False, list(needs))
    grad_T = (grad_grid.view(B * S, 2 * H * W) @ basis.mT).view(B, S, 2, 3) if needs[1] else None
    return grad_x, grad_T


def warp(x: Float[Tensor, "B C H W"], T: Float[Tensor, "B S 2 3"]) -> Float[Tensor, "B S C H W"]:
    """Sample every image through each of its S affine maps."""
    if torch.compiler.is_compiling():
        return _whole(x, T)
    views: Tensor = _Warp.apply(x, T)
    return views


def _whole(x: Tensor, T: Tensor) -> Tensor:
    """Do the same in one part; a tracer, too, cannot follow parts whose number depends on the batch."""
    (B, C, H, W), S = x.shape, T.shape[1]
    grid = _grid(T, _grid_basis(H, W, T), H)
    sampled = F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return sampled.view(B, C, S, H, W).transpose(1, 2)
