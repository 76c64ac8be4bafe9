"""Rows of small pictures with a word before each row, as one SVG that holds a PNG."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO

TILE, GAP, LABEL, LETTER = 56, 4, 40, 6
"""Pixels of a picture's side, between two pictures, for the words at least, and for a letter of theirs."""

Picture = Sequence[Sequence[int]] | Sequence[Sequence[Sequence[int]]]
"""Rows of whole numbers, or of three for each pixel."""


@dataclass(frozen=True)
class Row:
    """Pictures side by side."""

    name: str
    """The word before them."""
    pictures: Sequence[Picture]
    """All of one size."""
    signed: bool = True
    """Red above zero and blue below; otherwise from black to white. Three numbers for a pixel are red, green and blue
    about grey."""


def mosaic(rows: Sequence[Row], largest: int) -> bytes:
    """Draw rows of pictures, one below the other."""
    columns = len(rows[0].pictures)
    label = max(LABEL, 8 + LETTER * max(len(row.name) for row in rows))
    width, height = label + columns * (TILE + GAP), len(rows) * (TILE + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    ]
    for i, row in enumerate(rows):
        top = i * (TILE + GAP)
        parts.append(f'<text x="4" y="{top + TILE / 2 + 4:.0f}">{escape(row.name)}</text>')
        for j, picture in enumerate(row.pictures):
            parts.append(
                f'<image x="{label + j * (TILE + GAP)}" y="{top}" width="{TILE}" height="{TILE}" '
                f'style="image-rendering:pixelated" href="data:image/png;base64,{_png(picture, row.signed, largest)}"/>'
            )
    return "\n".join([*parts, "</svg>", ""]).encode()


def _png(picture: Picture, signed: bool, largest: int) -> str:
    import numpy as np
    from PIL import Image

    from augury.auditing.worst import signed_colours

    values = np.asarray(picture) / largest
    if values.ndim == 3:
        colours = (values.clip(-1, 1) + 1) / 2
    else:
        colours = signed_colours(values) if signed else np.repeat(values.clip(0, 1)[..., None], 3, axis=2)
    file = BytesIO()
    Image.fromarray((255 * colours).round().astype(np.uint8)).save(file, format="png", optimize=True)
    return b64encode(file.getvalue()).decode()
