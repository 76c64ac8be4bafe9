"""One picture, of any format and mode that Pillow reads, as float32 [C, H, W] in [0, 1].

- Bytes are divided by 255, 16-bit values (and 32-bit integers, Pillow's older name for them) by 65,535.
- Transparent pixels are laid over black, which is also what lies outside a warped image. Palettes become colours.
- A camera's orientation tag is obeyed. Of an animation the first frame is taken.
- Resizing keeps the proportions: the picture is cut at its centre to the proportions asked for, then resampled
  bilinearly over the full footprint of each new pixel, so that nothing aliases.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps

GREY_MODES = ("1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")
"""Pillow's modes without colour."""

WIDE_MODES = ("I", "I;16", "I;16B", "I;16L", "I;16N")
_ORIENTATION = 0x0112
_QUARTER_TURNS = (5, 6, 7, 8)


@dataclass(frozen=True)
class Header:
    """What a picture's header says, before its pixels are read."""

    height: int
    """Pixels, as it stands upright."""
    width: int
    """Pixels, as it stands upright."""
    colour: bool
    """Whether it has more than grey."""


def read_header(picture: Image.Image) -> Header:
    """Return the size and the colour of a picture without reading its pixels."""
    width, height = picture.size
    if picture.getexif().get(_ORIENTATION) in _QUARTER_TURNS:
        width, height = height, width
    return Header(height, width, picture.mode not in GREY_MODES)


def common_size(headers: Iterable[Header]) -> tuple[int, int]:
    """Return the most common size, the smallest of these where several are."""
    counts = Counter((h.height, h.width) for h in headers)
    most = max(counts.values())
    return min(size for size, count in counts.items() if count == most)


def to_pixels(picture: Image.Image, colour: bool, size: tuple[int, int] | None = None) -> np.ndarray:
    """Return a picture's pixels."""
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
    return np.asarray(fitted).clip(0, 1)
