"""Data with a planted truth (paper B, appendix D): every image is transformed once, at random, with a fixed seed.

    rotated            angle ~ U[-180, 180] degrees
    partially_rotated  angle ~ U[-90, 90] degrees
    translated         dx, dy ~ U[-8, 8] pixels, independent
    scaled             factor exp(s), s ~ U[-log 2, log 2], both axes jointly

Joined by "+" they act one after the other, in the order written ("rotated+translated" rotates, then shifts); the maps
are multiplied first, so that an image is resampled only once. Training and test images are treated alike. The data set
that comes back carries the widths that were planted, in a person's units.

Affine resampling of whole data sets, once per image: `out[n](p) = x[n](T[n] p)`.

Bilinear, zero outside, in the coordinates of `F.affine_grid(align_corners=False)` (-1 and 1 are the outer edges, y
points down), so that T = rotation by +90 degrees is `rot90(k=1)`: counter-clockwise. Maps are built in units of half
the shorter side, which keeps rotations rigid on images of any aspect.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.rng import generator, spawn
from augury.data.dataset import Dataset

Draw = Callable[[Float[Tensor, "N 2"], int], Float[Tensor, "N 3 3"]]


@dataclass(frozen=True)
class Variant:
    """One planted transformation."""

    draw: Draw
    """From noise on [-1, 1]^2 and the length of the shorter side in pixels to the maps."""
    planted: dict[str, float]
    """Widths in their units, by generator."""


def translations(shift: Float[Tensor, "N 2"]) -> Float[Tensor, "N 3 3"]:
    """Return translations."""
    T = torch.eye(3, dtype=shift.dtype).repeat(len(shift), 1, 1)
    T[:, :2, 2] = -shift  # the pixel now at p stood at p - shift
    return T


def rotations(degrees: Float[Tensor, " N"]) -> Float[Tensor, "N 3 3"]:
    """Return rotations."""
    radians = degrees * (math.pi / 180)
    T = torch.eye(3, dtype=degrees.dtype).repeat(len(degrees), 1, 1)
    T[:, 0, 0] = T[:, 1, 1] = radians.cos()
    T[:, 1, 0] = radians.sin()
    T[:, 0, 1] = -T[:, 1, 0]
    return T


def scalings(log_factor: Float[Tensor, " N"]) -> Float[Tensor, "N 3 3"]:
    """Return scalings about the centre, both axes alike."""
    T = torch.eye(3, dtype=log_factor.dtype).repeat(len(log_factor), 1, 1)
    T[:, 0, 0] = T[:, 1, 1] = (-log_factor).exp()
    return T


VARIANTS = {
    "rotated": Variant(lambda eps, side: rotations(180 * eps[:, 0]), {"rotation": 180.0}),
    "partially_rotated": Variant(lambda eps, side: rotations(90 * eps[:, 0]), {"rotation": 90.0}),
    "translated": Variant(
        lambda eps, side: translations(8 * eps / (side / 2)), {"translate_x": 8.0, "translate_y": 8.0}
    ),
    "scaled": Variant(lambda eps, side: scalings(math.log(2) * eps[:, 0]), {"scale_x": 2.0, "scale_y": 2.0}),
}
"""The single variants; any of them may be joined by "+"."""


def variant_names(name: str) -> list[str]:
    """Return the single variants that a name stands for."""
    parts = [choose("variant", part.strip(), VARIANTS) for part in name.split("+")]
    widths = [width for part in parts for width in VARIANTS[part].planted]
    twice = next((width for width in widths if widths.count(width) > 1), None)
    if twice:
        raise InputError(f"a variant must plant each width once; '{name}' plants {twice} twice.")
    return parts


def plant(data: Dataset, name: str, seed: int = 0) -> Dataset:
    """Return a data set in which every image was transformed once."""
    parts = variant_names(name)
    if data.kind != "image" or data.task != "classification":
        raise InputError(
            f"variants are for images with class labels, which stay true when the image moves; "
            f"got {data.kind}s for {data.task}."
        )
    rng_train = generator(seed)
    rng_test = spawn(generator(seed))
    planted = {width: value for part in parts for width, value in VARIANTS[part].planted.items()}
    return replace(
        data,
        x_train=_transformed(data.x_train, parts, rng_train),
        x_test=_transformed(data.x_test, parts, rng_test),
        source=f"{data.source}, {name}",
        planted={**data.planted, **planted},
    )


def _transformed(x: Tensor, parts: list[str], rng: torch.Generator) -> Tensor:
    N, side = len(x), min(x.shape[-2:])
    noise = torch.rand(N, len(parts), 2, generator=rng, dtype=torch.float64) * 2 - 1
    T = torch.eye(3, dtype=torch.float64).expand(N, 3, 3)
    for k, part in enumerate(parts):
        # The next variant acts on what this one gave: out(p) = x(T_1 T_2 ... p).
        T = T @ VARIANTS[part].draw(noise[:, k], side)
    return resample(x, T)


_PIXELS_AT_ONCE = 1 << 20


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
