"""The worst inputs as one picture: the input, its view, and the saliency maps of both in the frame of the input.

Red raises the largest logit, blue lowers it. An invariant model shows the same map twice.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from augury.audit.worst import Case
from augury.core.errors import InputError
from augury.core.files import written_whole

TILE, GAP = 112, 4
"""Pixels of a tile's longer side, and between tiles."""


def save_worst(path: Path, cases: Sequence[Case]) -> None:
    """Write the picture: a row for each case; columns input, view, map of the input, map of the view."""
    if path.suffix != ".png":
        raise InputError(f"the picture of the worst inputs must be a .png; got {path}.")
    if not cases or cases[0].x.ndim != 3:
        raise InputError("only images can be shown as a picture. Leave --pictures out.")
    rows = [[tile for tile in _tiles(case) if tile is not None] for case in cases]
    height, width = rows[0][0].shape[:2]
    sheet = np.full((len(rows) * (height + GAP) + GAP, len(rows[0]) * (width + GAP) + GAP, 3), 255, np.uint8)
    for i, row in enumerate(rows):
        for j, tile in enumerate(row):
            top, left = GAP + i * (height + GAP), GAP + j * (width + GAP)
            sheet[top : top + height, left : left + width] = tile
    with written_whole(path) as temporary:
        Image.fromarray(sheet).save(temporary, format="png")


def _tiles(case: Case) -> list[np.ndarray | None]:
    low, high = float(case.x.min()), float(case.x.max())
    pictures = [picture_of(image, low, high) for image in (case.x, case.x_g)]
    maps = [None if m is None else map_colours(m) for m in (case.m, case.m_g)]
    return [None if tile is None else _enlarged(tile) for tile in (*pictures, *maps)]


def picture_of(x: Tensor, low: float, high: float) -> np.ndarray:
    """Return an image as grey or colour from 0 to 1."""
    channels = x if x.shape[0] == 3 else x.mean(0, keepdim=True).expand(3, -1, -1)
    scaled = (channels - low) / max(high - low, 1e-12)
    return scaled.clamp(0, 1).permute(1, 2, 0).float().numpy()


def map_colours(m: Tensor) -> np.ndarray:
    """Return a signed map as red on white on blue, relative to its own largest value."""
    total = m.sum(0).float()
    return signed_colours((total / total.abs().max().clamp(min=1e-30)).numpy())


def signed_colours(values: np.ndarray) -> np.ndarray:
    """Return colours for numbers between -1 and 1: red above 0, white at 0, blue below."""
    strength = values[..., None]
    red, blue = np.array([0.75, 0.1, 0.1]), np.array([0.1, 0.2, 0.75])
    colour = np.where(strength > 0, red, blue)
    mixed: np.ndarray = 1 - np.abs(strength) * (1 - colour)
    return mixed


def _enlarged(tile: np.ndarray) -> np.ndarray:
    factor = max(1, TILE // max(tile.shape[:2]))
    return (255 * tile).round().astype(np.uint8).repeat(factor, 0).repeat(factor, 1)
