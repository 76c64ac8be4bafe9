"""Pixels from matrices: bilinear sampling of every image at the points T p, for all S samples of it at once.

`views[b, s](p) = x[b](T[b, s] p)`, p in the coordinates of `F.affine_grid(align_corners=False)`: -1 and 1 are
the outer edges of the image, x to the right, y downward; outside is 0. So T = rotation by +90 degrees is
`rot90(k=1)`.

Faster than `affine_grid` + `grid_sample` on repeated images because the S grids of an image are stacked along
its height: the image is never copied S times. The backward pass keeps the grid only, and goes from the
gradient in the grid to the gradient in T by two short sums.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def pixel_centres(n: int, like: Tensor) -> Float[Tensor, "{n}"]:
    """Return the coordinates of the centres of n pixels spanning [-1, 1].

    Parameters
    ----------
    n
        Pixels along the axis.
    like
        Gives dtype and device.

    Returns
    -------
    Tensor
        The coordinates.
    """
    return (torch.arange(n, dtype=like.dtype, device=like.device) * 2 + 1) / n - 1


def _grid(T: Tensor, H: int, W: int) -> Tensor:
    B, S = T.shape[:2]
    x, y = pixel_centres(W, T), pixel_centres(H, T)
    grid = T.new_empty(B, S, H, W, 2)
    for i in range(2):
        row = T[..., i, 1, None] * y + T[..., i, 2, None]  # [B, S, H]
        torch.add(row[..., None], (T[..., i, 0, None] * x)[..., None, :], out=grid[..., i])
    return grid.view(B, S * H, W, 2)


class _Warp(torch.autograd.Function):
    """Forward and first derivative by hand; a second derivative goes through `_plain_warp`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, T: Tensor) -> Tensor:
        H, W = x.shape[-2:]
        grid = _grid(T, H, W)
        ctx.save_for_backward(x, T, grid)
        return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, T, grid = ctx.saved_tensors
        if torch.is_grad_enabled() and grad.requires_grad:
            with torch.enable_grad():
                return _double_backward(x, T, grad, ctx.needs_input_grad)
        mask = [bool(ctx.needs_input_grad[0]), bool(ctx.needs_input_grad[1])]
        grad_x, grad_grid = torch.ops.aten.grid_sampler_2d_backward(
            grad.contiguous(), x, grid, 0, 0, False, mask
        )
        grad_T = _grid_to_T(grad_grid, T, x.shape[-2], x.shape[-1]) if mask[1] else None
        return grad_x if mask[0] else None, grad_T


def _grid_to_T(grad_grid: Tensor, T: Tensor, H: int, W: int) -> Tensor:
    B, S = T.shape[:2]
    g = grad_grid.view(B, S, H, W, 2)
    per_row = g.sum(3)  # [B, S, H, 2]
    x, y = pixel_centres(W, T), pixel_centres(H, T)
    on_y = torch.einsum("bshi,h->bsi", per_row, y)
    on_x = torch.einsum("bswi,w->bsi", g.sum(2), x)
    return torch.stack([on_x, on_y, per_row.sum(2)], dim=-1)


def _plain_warp(x: Tensor, T: Tensor) -> Tensor:
    """Sample by differentiable steps only: the slow twin of `_Warp`, any number of derivatives."""
    (H, W), (B, S) = x.shape[-2:], T.shape[:2]
    xs, ys = torch.meshgrid(pixel_centres(W, T), pixel_centres(H, T), indexing="xy")
    p = torch.stack([xs, ys, torch.ones_like(xs)], dim=-1)
    grid = torch.einsum("hwj,bsij->bshwi", p, T).reshape(B, S * H, W, 2)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def _double_backward(
    x: Tensor, T: Tensor, grad: Tensor, needs: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor | None]:
    inputs = [tensor for tensor, needed in zip((x, T), needs, strict=True) if needed]
    grads = iter(torch.autograd.grad(_plain_warp(x, T), inputs, grad, create_graph=True))
    return (next(grads) if needs[0] else None), (next(grads) if needs[1] else None)


def warp(x: Float[Tensor, "B C H W"], T: Float[Tensor, "B S 2 3"]) -> Float[Tensor, "B S C H W"]:
    """Sample every image through each of its S affine maps.

    Parameters
    ----------
    x
        Images.
    T
        Upper two rows of the maps from output to input coordinates.

    Returns
    -------
    Tensor
        The views, differentiable in x and T.
    """
    (B, C, H, W), S = x.shape, T.shape[1]
    views: Tensor = _Warp.apply(x, T)
    return views.view(B, C, S, H, W).transpose(1, 2)
