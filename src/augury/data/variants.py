"""Data with a planted invariance: transformed images (paper B, app. D), coloured digits (paper C), points in the plane.

Every image is transformed once, at random, with a fixed seed; the data set carries the widths that were planted.

    rotated            angle ~ U[-180, 180] degrees
    partially_rotated  angle ~ U[-90, 90] degrees
    translated         dx, dy ~ U[-8, 8] pixels, independent
    scaled             factor exp(s), s ~ U[-log 2, log 2], both axes jointly

Joined by "+" they act one after the other, in the order written ("rotated+translated" rotates, then shifts); the maps
are multiplied first, so that an image is resampled only once: out[n](p) = x[n](T[n] p), bilinear, zero outside, in
the coordinates of `F.affine_grid(align_corners=False)`, so that a rotation by +90 degrees is `rot90(k=1)`. Maps are
built in units of half the shorter side, which keeps rotations rigid on images of any aspect.

coloured_rotated: every grey image is rotated by one of seven angles, then put into one of three colour channels, the
others staying black. Three tasks on the same images, with descriptors (rotation, colour): digit (1, 1), rotation (0,
1), colour (1, 0).

toy: the width w says how far a point may be turned, from the middle of its arc, before its label changes (papers A
and B).

    w = 180         two rings: the label is the radius, which no rotation changes
    w = 90, 45      180 / w arcs on each of two rings, neighbours of different class, those of the other ring swapped;
                    each arc is filled to half, so that a margin separates the classes
    w = 0           a chequerboard of 4 x 4 cells: turning changes labels everywhere

Of orbit-averaged models the evidence is then greatest at w (a test holds this for a Gaussian process), which would
not be so had points merely been smeared by +-w: with nothing of the other class nearby, a wider average costs
nothing.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.rng import generator, spawn
from augury.data.dataset import Dataset
from augury.data.rows import in_memory


def translations(shift: Float[Tensor, "N 2"]) -> Float[Tensor, "N 3 3"]:
    T = torch.eye(3, dtype=shift.dtype).repeat(len(shift), 1, 1)
    T[:, :2, 2] = -shift  # the pixel now at p was at p - shift
    return T


def rotations(degrees: Float[Tensor, " N"]) -> Float[Tensor, "N 3 3"]:
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


VARIANTS: dict[str, tuple[Callable[[Tensor, int], Tensor], dict[str, float]]] = {
    "rotated": (lambda eps, side: rotations(180 * eps[:, 0]), {"rotation": 180.0}),
    "partially_rotated": (lambda eps, side: rotations(90 * eps[:, 0]), {"rotation": 90.0}),
    "translated": (lambda eps, side: translations(8 * eps / (side / 2)), {"translate_x": 8.0, "translate_y": 8.0}),
    "scaled": (lambda eps, side: scalings(math.log(2) * eps[:, 0]), {"scale_x": 2.0, "scale_y": 2.0}),
}
"""The single variants, which may be joined by "+": from noise [N, 2] on [-1, 1] and the shorter side in pixels to maps
[N, 3, 3], and the widths that are planted, in their units."""


def variant_names(name: str) -> list[str]:
    """Return the single variants of a name."""
    parts = [choose("variant", part.strip(), VARIANTS) for part in name.split("+")]
    widths = [width for part in parts for width in VARIANTS[part][1]]
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
            f"got data of kind '{data.kind}' for {data.task}."
        )
    rng_train = generator(seed)
    rng_test = spawn(generator(seed))
    planted = {width: value for part in parts for width, value in VARIANTS[part][1].items()}
    return replace(
        data,
        x_train=_transformed(in_memory(data.x_train), parts, rng_train),
        x_test=_transformed(in_memory(data.x_test), parts, rng_test),
        source=f"{data.source}, {name}",
        planted={**data.planted, **planted},
    )


def _transformed(x: Tensor, parts: list[str], rng: torch.Generator) -> Tensor:
    N, side = len(x), min(x.shape[-2:])
    noise = torch.rand(N, len(parts), 2, generator=rng, dtype=torch.float64) * 2 - 1
    T = torch.eye(3, dtype=torch.float64).expand(N, 3, 3)
    for k, part in enumerate(parts):
        # The next variant acts on what this one gave: out(p) = x(T_1 T_2 ... p).
        T = T @ VARIANTS[part][0](noise[:, k], side)
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


ANGLES = (-90, -60, -30, 0, 30, 60, 90)  # degrees, counter-clockwise

COLOURS = ("red", "green", "blue")

DESCRIPTORS = {"digit": (1, 1), "rotation": (0, 1), "colour": (1, 0)}
"""The tasks, each with what it should be invariant to: (rotation, colour)."""


def coloured_rotated(data: Dataset, task: str = "digit", seed: int = 0) -> Dataset:
    """Return the coloured and rotated images with the labels of one task."""
    choose("task", task, DESCRIPTORS)
    return coloured_rotated_tasks(data, seed)[task]


def coloured_rotated_tasks(data: Dataset, seed: int = 0) -> dict[str, Dataset]:
    """Return the three tasks on the same images, whose pixels they share."""
    if data.kind != "image" or data.task != "classification" or data.input_shape[0] != 1:
        raise InputError(
            f"coloured-rotated digits are made of grey images [N, 1, H, W] with class labels; "
            f"got {data.kind}s {list(data.input_shape)} for {data.task}. Try mnist5k, mnist or kmnist10k."
        )
    x_train, angle_train, colour_train = _draw(in_memory(data.x_train), generator(seed))
    x_test, angle_test, colour_test = _draw(in_memory(data.x_test), spawn(generator(seed)))
    labels = {
        "digit": (data.y_train, data.y_test, data.class_names, 90.0),
        "rotation": (angle_train, angle_test, tuple(f"{a} deg" for a in ANGLES), 0.0),
        "colour": (colour_train, colour_test, COLOURS, 90.0),
    }
    return {
        task: replace(
            data,
            x_train=x_train,
            x_test=x_test,
            y_train=y_train,
            y_test=y_test,
            class_names=names,
            source=f"{data.source}, coloured_rotated ({task})",
            planted={"rotation": width},
        )
        for task, (y_train, y_test, names, width) in labels.items()
    }


def _draw(
    x: Float[Tensor, "N 1 H W"], rng: torch.Generator
) -> tuple[Float[Tensor, "N 3 H W"], Int[Tensor, " N"], Int[Tensor, " N"]]:
    """Return the images, and which angle and which colour each got."""
    N = len(x)
    # Both from one draw per image, so that the first n images of a set do not depend on how many follow.
    cell = torch.randint(len(ANGLES) * len(COLOURS), (N,), generator=rng)
    angle, colour = cell // len(COLOURS), cell % len(COLOURS)
    degrees = torch.tensor(ANGLES, dtype=torch.float64)[angle]
    grey = resample(x, rotations(degrees))
    out = torch.zeros(N, len(COLOURS), *x.shape[2:], dtype=x.dtype)
    out[torch.arange(N), colour] = grey[:, 0]
    return out, angle, colour


ROTATIONS = (0.0, 45.0, 90.0, 180.0)  # widths in degrees that can be planted


def toy(rotation: float = 180.0, n: int = 200, n_test: int = 1000, noise: float = 0.1, seed: int = 0) -> Dataset:
    """Return a two-class problem in the plane."""
    if rotation not in ROTATIONS:
        widths = ", ".join(f"{w:g}" for w in ROTATIONS)
        raise InputError(f"rotation of the toy data must be one of {widths} degrees; got {rotation}.")
    rng = generator(seed)
    x, y = _points(rotation, n + n_test, noise, rng)
    return Dataset(
        x[:n], y[:n], x[n:], y[n:],
        kind="coordinates", class_names=("o", "x"), source=f"toy ({rotation:g} deg)", planted={"rotation": rotation},
    )  # fmt: skip


def _points(
    rotation: float, n: int, noise: float, rng: torch.Generator
) -> tuple[Float[Tensor, "{n} 2"], Int[Tensor, " {n}"]]:
    u = torch.rand(n, 3, generator=rng)
    if rotation == 0:
        x = 4 * u[:, :2] - 2
        return x, x.floor().long().sum(1) % 2
    ring = (2 * u[:, 0]).long()
    if rotation == 180:
        y, angle = ring, 2 * math.pi * u[:, 1]
    else:
        arcs = round(180 / rotation)
        arc = (arcs * u[:, 1]).long()
        y = (arc + ring) % 2
        angle = (2 * math.pi / arcs) * (arc + (u[:, 2] - 0.5) / 2)
    radius = 1 + ring + noise * torch.randn(n, generator=rng)
    return radius[:, None] * torch.stack([angle.cos(), angle.sin()], 1), y
