"""Images without labels: for pre-training, where nothing is known of them but their pixels.

load_images("imagenette64")     the training images of a named set
load_images("photos/")          every image below a folder, whatever its sub-folders
load_images("data.npz")         its training images; arrays and tensors too
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError
from augury.core.files import Progress, silent
from augury.core.rng import generator
from augury.data.arrays import as_array, infer_kind, open_npz, to_inputs
from augury.data.dataset import Dataset, check_finite, check_shape
from augury.data.folder import Found, Opener, common_size, image_files, read_header, read_images
from augury.data.load import load
from augury.data.named import NAMED

ARRAYS = ("x_train", "train_images", "x", "images")
"""Names under which an `.npz` may hold its images, in the order in which they are looked for."""


@dataclass(frozen=True, eq=False)
class Images:
    """Images and where they came from."""

    x: Float[Tensor, "N C H W"]
    """Pixels in [0, 1]."""
    source: str
    """As a person would say it."""
    skipped: tuple[str, ...] = ()
    """Files passed over because they could not be read."""


def load_images(
    source: Any,
    *,
    variant: str | None = None,
    subset: int | None = None,
    size: int | None = None,
    seed: int = 0,
    skip_bad: bool = False,
    progress: Progress = silent,
) -> Images:
    """Return images, wherever they come from; labels are not looked at."""
    images = _read(source, variant, size, seed, skip_bad, progress)
    check_shape(images.x, "image", "data")
    check_finite(images.x, "data", "inputs")
    N = len(images.x)
    if N < 2:
        raise InputError(f"pre-training tells images from one another and needs at least two; got {N}.")
    if subset is None:
        return images
    if not 2 <= subset <= N:
        raise InputError(f"subset must be between 2 and {N} (all); got {subset}.")
    keep = torch.randperm(N, generator=generator(seed))[:subset]
    return Images(images.x[keep], images.source, images.skipped)


def _read(
    source: Any, variant: str | None, size: int | None, seed: int, skip_bad: bool, progress: Progress
) -> Images:
    place = Path(source).expanduser() if isinstance(source, str | Path) and source not in NAMED else None
    if place is not None and place.is_dir():
        _refuse(variant=variant)
        return _folder(place, size, skip_bad, progress)
    if place is not None and place.suffix == ".npz" and place.is_file() and variant is None:
        _refuse(size=size)
        arrays = open_npz(place)
        name = next((name for name in ARRAYS if name in arrays), None)
        if name is None:
            held = ", ".join(arrays) or "nothing"
            raise InputError(f"{place} must hold images under one of {', '.join(ARRAYS)}; it holds {held}.")
        return Images(_pixels(arrays[name]), f"file {place}")
    if isinstance(source, np.ndarray | Tensor):
        _refuse(variant=variant, size=size)
        return Images(_pixels(as_array(source)), "arrays")
    data = load(source, variant=variant, size=size, seed=seed, skip_bad=skip_bad, progress=progress)
    return _of(data)


def _of(data: Dataset) -> Images:
    if data.kind != "image":
        raise InputError(f"pre-training is for images [N, C, H, W]; got data of kind '{data.kind}'.")
    return Images(data.x_train, data.source, data.skipped)


def _pixels(array: np.ndarray) -> Tensor:
    kind = infer_kind(array)
    if kind != "image":
        raise InputError(
            f"pre-training is for images [N, C, H, W]; got an array of shape {list(array.shape)}."
        )
    return to_inputs(array, kind)


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} cannot be chosen for this source; got {name}={value!r}. Leave it out.")


def _folder(folder: Path, size: int | None, skip_bad: bool, progress: Progress) -> Images:
    opener = Opener(skip_bad)
    inner = folder / "train"
    headers = [
        (path, opener.read(path, read_header)) for path in image_files(inner if inner.is_dir() else folder)
    ]
    files = [Found(path, "", header) for path, header in headers if header is not None]
    if not files:
        raise InputError(
            f"folder {folder} must hold images of a format that Pillow reads (png, jpg, tif, bmp, webp, ...); "
            f"it holds none."
        )
    colour = any(file.header.colour for file in files)
    shape = (size, size) if size else common_size(file.header for file in files)
    part = read_images(files, colour, shape, opener, progress)
    return Images(part.x, f"folder {folder}", part.skipped)
