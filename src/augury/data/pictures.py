"""One picture: what its header says, and its pixels as floats [C, H, W] in [0, 1], in the size that all get.

An image of another size is cut at the centre to the proportions wanted, then resampled bilinearly over the full
footprint of each new pixel, so that nothing aliases. Bytes are divided by 255, 16-bit values (and 32-bit integers,
Pillow's older name for them) by 65,535. Transparent pixels are blended with black, as outside a warped image. The
orientation tag is applied; the first frame of an animation is used.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from augury.data.layout import check_bits
from augury.data.rows import Rows

SMALLEST_SIDE = 16  # pixels to which the shorter side of an elongated image is reduced at most


@dataclass(frozen=True, slots=True)
class Header:
    """What a picture's header says, before its pixels are read."""

    height: int
    width: int  # pixels, with the picture upright
    colour: bool  # whether it has more than grey
    wide: bool = False  # whether its pixels have 16 bits
    real: bool = False  # whether they are floats


GREY_MODES = ("1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")  # Pillow's modes without colour

WIDE_MODES = ("I", "I;16", "I;16B", "I;16L", "I;16N")
_ORIENTATION = 0x0112
_QUARTER_TURNS = (5, 6, 7, 8)


def read_header(picture: Image.Image) -> Header:
    """Return the size and the colour of a picture without reading its pixels."""
    width, height = picture.size
    if picture.getexif().get(_ORIENTATION) in _QUARTER_TURNS:
        width, height = height, width
    mode = picture.mode
    return _header(height, width, mode not in GREY_MODES, mode in WIDE_MODES, mode == "F")


_header = lru_cache(1024)(Header)  # a million images share a few


def common_size(headers: list[Header], side: int | None = None) -> tuple[int, int]:
    """Return the most common size (the smallest of these where several are), its longer side reduced to `side`.

    If it is that of less than a quarter of the images: a square as long as the median of their shorter sides.
    """
    counts = Counter((h.height, h.width) for h in headers)
    most = max(counts.values())
    height, width = min(size for size, count in counts.items() if count == most)
    if 4 * most < len(headers):
        height = width = sorted(min(h.height, h.width) for h in headers)[len(headers) // 2]
    factor = min(1.0, (side or math.inf) / max(height, width))
    least = min(SMALLEST_SIDE, height, width)
    return max(least, round(factor * height)), max(least, round(factor * width))


def to_pixels(picture: Image.Image, colour: bool, size: tuple[int, int] | None = None) -> np.ndarray:
    if size is not None:
        picture.draft(None, (4 * max(size), 4 * max(size)))  # a JPEG is decoded at a fraction of its size
    upright = ImageOps.exif_transpose(picture)
    planes = _planes(upright, colour)
    if size is not None and size != planes.shape[1:]:
        planes = np.stack([_fit(plane, size) for plane in planes])
    return planes


def _planes(picture: Image.Image, colour: bool) -> np.ndarray:
    if picture.mode in WIDE_MODES or picture.mode == "F":
        grey = np.asarray(picture).astype(np.float32)
        if picture.mode in WIDE_MODES:
            grey /= 65535
        if not (grey.min() >= 0 and grey.max() <= 1):  # NaN too
            raise ValueError(f"pixels of mode {picture.mode} must be finite and lie in [0, 1] after scaling")
        return np.repeat(grey[None], 3 if colour else 1, axis=0)
    if picture.mode in ("P", "PA", "LA", "La", "RGBa") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
    if picture.mode == "RGBA":
        black = Image.new("RGBA", picture.size, (0, 0, 0, 255))
        picture = Image.alpha_composite(black, picture)
    values = np.asarray(picture.convert("RGB" if colour else "L"), dtype=np.float32) / 255
    return values.transpose(2, 0, 1) if colour else values[None]


def _fit(plane: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    picture = Image.fromarray(np.ascontiguousarray(plane))
    fitted = ImageOps.fit(picture, (size[1], size[0]), Image.Resampling.BILINEAR, centering=(0.5, 0.5))
    return np.asarray(fitted).clip(plane.min(), plane.max())


def resized(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Bring images [N, C, H, W] to a size as those of a folder are."""
    if tuple(x.shape[-2:]) == size:
        return x
    planes = [_fit(plane, size) for plane in x.flatten(0, 1).numpy()]
    return torch.from_numpy(np.stack(planes)).view(*x.shape[:2], *size)


def pixel_type(headers: Iterable[Header]) -> np.dtype:
    """Return the smallest type that holds the pixels of all pictures: bytes, 16 bits, or floats."""
    real, wide = (any(values) for values in zip(*((h.real, h.wide) for h in headers), strict=True))
    return np.dtype(np.float32 if real else np.uint16 if wide else np.uint8)


def to_type(pixels: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return pixels in [0, 1] as integers of a type, rounded; floats as they are."""
    return pixels if dtype.kind == "f" else np.rint(pixels * np.iinfo(dtype).max).astype(dtype)


def sizes_note(headers: Iterable[Header], size: tuple[int, int] | None) -> str:
    """Say how images of several sizes were brought to one."""
    sizes = {(header.height, header.width) for header in headers}
    if sizes <= {size} or size is None:
        return ""
    (h, w), off = max(sizes), max(abs(w / h * size[0] / size[1] - 1) for h, w in sizes)
    within_a_pixel = off <= 1 / min(size)
    done = "resized" if within_a_pixel else "cropped at the centre"
    return f"{done} from {h} x {w}" if len(sizes) == 1 else f"{len(sizes)} sizes, {done}"


def check_wide(headers: Iterable[Header], x: Tensor | Rows) -> None:
    """Raise if all pictures have 16 bits of which they use 12 at most."""
    if len(x) and all(header.wide for header in headers):
        check_bits(round(65535 * float(x.max())))
