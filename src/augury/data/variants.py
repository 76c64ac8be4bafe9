"""Data with a planted truth (paper B, appendix D): every image is transformed once, at random, with a fixed seed.

    rotated            angle ~ U[-180, 180] degrees
    partially_rotated  angle ~ U[-90, 90] degrees
    translated         dx, dy ~ U[-8, 8] pixels, independent
    scaled             factor exp(s), s ~ U[-log 2, log 2], both axes jointly

Joined by "+" they act one after the other, in the order written ("rotated+translated" rotates, then shifts); the maps
are multiplied first, so that an image is resampled only once. Training and test images are treated alike. The data set
that comes back carries the widths that were planted, in a person's units.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.rng import generator, spawn
from augury.data.dataset import Dataset
from augury.data.resample import resample, rotations, scalings, translations

Draw = Callable[[Float[Tensor, "N 2"], int], Float[Tensor, "N 3 3"]]


@dataclass(frozen=True)
class Variant:
    """One planted transformation."""

    draw: Draw
    """From noise on [-1, 1]^2 and the length of the shorter side in pixels to the maps."""
    planted: dict[str, float]
    """Widths in their units, by generator."""


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
