"""Inputs without labels: images for pre-training, and any inputs for an audit.

load_images("imagenette64")     the training images of a named set
load_images("photos/")          every image below a folder, in any sub-folder
load_images("data.npz")         its training images; arrays and tensors too
load_inputs(source)             the data set, or inputs alone where there are no labels
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.data.arrays import NAMES, holds_arrays, open_arrays, part_of
from augury.data.dataset import Dataset, check_finite, check_shape
from augury.data.folder import find_parts, find_table, read_unlabelled, subfolders
from augury.data.load import checked_size, load
from augury.data.named import NAMED
from augury.data.rows import taken
from augury.data.targets import Options, Part

ARRAYS = tuple(dict.fromkeys(names[0] for names in NAMES))
"""Names under which an `.npz` may hold its inputs, in the order in which they are looked for."""


def load_inputs(source: Any, **options: Any) -> Dataset | Part:
    """Return what `load` returns, or the inputs alone of arrays, `.npz` files and folders without labels."""
    place, how = _place(source), _options(options)
    if isinstance(source, np.ndarray | Tensor):
        return _array(source, how, "arrays")
    if place is not None and holds_arrays(place):
        arrays = open_arrays(place)
        if not any(all(name in arrays for name in names) for names in NAMES):
            return _array(_named(arrays, place), how, f"file {place}")
    elif place is not None and place.is_dir() and not subfolders(place) and find_table(place) is None:
        return _folder(place, how)
    return load(source, **options)


def load_images(
    source: Any, *, variant: str | None = None, subset: int | None = None, seed: int = 0, **options: Any
) -> Part:
    """Return images from any source, without labels; further options are those of `load`."""
    place, how = _place(source), _options(options)
    if place is not None and variant is not None:
        raise InputError(f"a variant can be planted in a named set only; got variant={variant!r}. Leave it out.")
    if place is not None and holds_arrays(place):
        images = _array(_named(open_arrays(place), place), how, f"file {place}")
    elif place is not None and place.is_dir():
        images = _folder(find_parts(place)[0], how)
    else:
        found = load_inputs(source, variant=variant, seed=seed, **options)
        x = found.x_train if isinstance(found, Dataset) else found.x
        images = Part(x, np.zeros(0), found.skipped, found.layout, found.scaling, found.kind, found.source)
    N = len(images.x)
    if images.kind != "image":
        raise InputError(
            f"pre-training is for images [N, C, H, W]; got data of kind '{images.kind}', {list(images.x.shape)}."
        )
    if N < 2:
        raise InputError(f"pre-training compares images and needs at least two; got {N}.")
    if subset is None:
        return images
    if not 2 <= subset <= N:
        raise InputError(f"subset must be between 2 and {N} (all); got {subset}.")
    return replace(images, x=taken(images.x, torch.randperm(N, generator=generator(seed))[:subset]))


def _place(source: Any) -> Path | None:
    """Return the file or folder that a source names, if it is there."""
    if not isinstance(source, str | Path) or source in NAMED:
        return None
    place = Path(source).expanduser()
    return place if place.exists() else None


def _named(arrays: dict[str, np.ndarray], place: Path) -> np.ndarray:
    name = next((name for name in ARRAYS if name in arrays), None)
    if name is None:
        held = ", ".join(arrays) or "nothing"
        raise InputError(f"{place} must hold inputs under one of {', '.join(ARRAYS)}; it holds {held}.")
    return arrays[name]


def _options(given: dict[str, Any]) -> Options:
    known = {key: given[key] for key in ("kind", "skip_bad", "progress") if key in given}
    return Options(size=checked_size(given.get("size")), **known)


def _array(x: Any, options: Options, source: str) -> Part:
    part = part_of(x, np.zeros(0), options)
    check_shape(part.x, part.kind, "data")
    check_finite(part.x, "data", "inputs")
    return replace(part, source=source)


def _folder(folder: Path, options: Options) -> Part:
    part = read_unlabelled(folder, options)
    check_shape(part.x, "image", "data")
    return replace(part, source=f"folder {folder}")
