"""Real data that Python packages ship: time series and outlines, texture photographs, outlines of cells.

- aeon, the UCR archive's `.ts` files: comment and header lines, then per series its values, a colon, its label. The
  archive's own training and test parts.
- scikit-image, photographs of brick, grass and gravel (512 x 512, grey): patches of 128 pixels, half overlapping. The
  test patches lie in the right quarter of each photograph, which no training patch touches.
- geomstats, outlines of 650 cells in pixels: the distance from the centroid at 128 points of equal arc length, over its
  mean. What is left of a rotation is a circular shift, and of a reflection the mirror.
"""

import io
from collections.abc import Mapping

import numpy as np
from PIL import Image

from augury.core.errors import InputError
from augury.data.split import split_arrays

Arrays = dict[str, np.ndarray]

TEXTURES = ("brick", "grass", "gravel")
PATCH, STEP = 128, 64
TREATMENTS = ("control", "cytd", "jasp")
POINTS = 128


def parse_series(files: Mapping[str, bytes]) -> Arrays:
    """Return the four arrays of a data set of equally long series in two `.ts` files."""
    arrays: Arrays = {}
    for part in ("train", "test"):
        (name,) = (name for name in files if name.endswith(f"_{part.upper()}.ts"))
        lines = [line.strip() for line in files[name].decode("utf-8", "replace").splitlines()]
        rows = [line.rpartition(":") for line in lines if line and line[0] not in "#@"]
        try:
            x = np.array([values.split(",") for values, _, _ in rows], dtype=np.float32)
            y = np.array([int(label) for _, _, label in rows])
        except ValueError as error:
            raise InputError(f"{name} must hold series of one length, each with a label: {error}.") from error
        arrays |= {f"x_{part}": x[:, None], f"y_{part}": y}
    first = arrays["y_train"].min()
    return arrays | {key: arrays[key] - first for key in ("y_train", "y_test")}


def parse_textures(files: Mapping[str, bytes]) -> Arrays:
    """Return the patches of the photographs, one class for each."""
    parts: dict[str, list[np.ndarray]] = {"train": [], "test": []}
    for name in TEXTURES:
        with Image.open(io.BytesIO(files[f"{name}.png"])) as picture:
            pixels = np.asarray(picture.convert("L"))
        border = pixels.shape[1] - PATCH
        for part, region in (("train", pixels[:, :border]), ("test", pixels[:, border:])):
            starts = [range(0, side - PATCH + 1, STEP if part == "train" else STEP // 4) for side in region.shape]
            parts[part].append(np.stack([region[i : i + PATCH, j : j + PATCH] for i in starts[0] for j in starts[1]]))
    arrays: Arrays = {}
    for part, patches in parts.items():
        labels = np.repeat(np.arange(len(patches)), [len(some) for some in patches])
        arrays |= {f"x_{part}": np.concatenate(patches), f"y_{part}": labels}
    return arrays


def parse_cells(files: Mapping[str, bytes]) -> Arrays:
    """Return the outlines of the cells by treatment, 80 % and 20 %."""
    outlines = [
        np.array([line.split() for line in block.splitlines()], dtype=np.float64)
        for block in files["cells.txt"].decode("ascii").strip().split("\n\n")
    ]
    labels = files["treatments.txt"].decode("ascii").split()
    if len(outlines) != len(labels):
        raise InputError(f"there must be one treatment per cell; got {len(labels)} for {len(outlines)}.")
    x = np.stack([centroid_distance(outline) for outline in outlines])
    return split_arrays(x[:, None], np.array([TREATMENTS.index(label) for label in labels]))


def centroid_distance(outline: np.ndarray, points: int = POINTS) -> np.ndarray:
    """Return the distance from the centroid, at points of equal arc length, divided by its mean; anticlockwise."""
    x, y = np.concatenate([outline, outline[:1]]).T
    if np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) < 0:
        x, y = x[::-1], y[::-1]
    at = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    t = np.arange(points) / points * at[-1]
    x, y = np.interp(t, at, x), np.interp(t, at, y)
    distance = np.hypot(x - x.mean(), y - y.mean())
    return (distance / distance.mean()).astype(np.float32)
