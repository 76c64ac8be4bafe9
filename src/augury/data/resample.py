"""Affine resampling of whole data sets, once per image: `out[n](p) = x[n](T[n] p)`.

Bilinear, zero outside, in the coordinates of `F.affine_grid(align_corners=False)` (-1 and 1 are the outer edges, y
points down), so that T = rotation by +90 degrees is `rot90(k=1)`: counter-clockwise. Maps are built in units of half
the shorter side, which keeps rotations rigid on images of any aspect.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

_PIXELS_AT_ONCE = 1 << 20


def rotations(degrees: Float[Tensor, " N"]) -> Float[Tensor, "N 3 3"]:
    """Return rotations."""
    radians = degrees * (math.pi / 180)
    T = torch.eye(3, dtype=degrees.dtype).repeat(len(degrees), 1, 1)
    T[:, 0, 0] = T[:, 1, 1] = radians.cos()
    T[:, 1, 0] = radians.sin()
    T[:, 0, 1] = -T[:, 1, 0]
    return T


def translations(shift: Float[Tensor, "N 2"]) -> Float[Tensor, "N 3 3"]:
    """Return translations."""
    T = torch.eye(3, dtype=shift.dtype).repeat(len(shift), 1, 1)
    T[:, :2, 2] = -shift  # the pixel now at p stood at p - shift
    return T


def scalings(log_factor: Float[Tensor, " N"]) -> Float[Tensor, "N 3 3"]:
    """Return scalings about the centre, both axes alike."""
    T = torch.eye(3, dtype=log_factor.dtype).repeat(len(log_factor), 1, 1)
    T[:, 0, 0] = T[:, 1, 1] = (-log_factor).exp()
    return T


def resample(x: Float[Tensor, "N C H W"], T: Float[Tensor, "N 3 3"]) -> Float[Tensor, "N C H W"]:
    """Resample every image through its map."""
    C, H, W = x.shape[1:]
    half = torch.tensor([W, H, min(H, W)], dtype=T.dtype)
    maps = (T[:, :2] * (half[None, :] / half[:2, None])).to(x.dtype)  # D^-1 T D, D = diag(W, H) / min(H, W)
    out = torch.empty_like(x)
    step = max(1, _PIXELS_AT_ONCE // (C * H * W))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        grid = _grid(maps[part], H, W)
        out[part] = F.grid_sample(x[part], grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return out


def _grid(maps: Tensor, H: int, W: int) -> Tensor:
    """Do what `F.affine_grid` does, as sums of rows and columns: several times faster on small images."""
    x, y = ((torch.arange(n, dtype=maps.dtype) * 2 + 1) / n - 1 for n in (W, H))
    grid = maps.new_empty(len(maps), H, W, 2)
    for i in range(2):
        rows = maps[:, i, 1, None] * y + maps[:, i, 2, None]
        columns = maps[:, i, 0, None] * x
        torch.add(rows[:, :, None], columns[:, None, :], out=grid[..., i])
    return grid
