"""Any map-style data set: torch's, torchvision's (pairs with a Pillow picture), Hugging Face's (dictionaries), a list.

An example is a pair (input, label) or a dictionary with an input and a label under one of the usual names. Inputs are
tensors, arrays or pictures, of one shape each (pictures of mixed sizes are brought to one, as in a folder).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from augury.core.errors import InputError
from augury.core.files import Progress, silent
from augury.data.arrays import LABEL_COLUMNS, part_of
from augury.data.dataset import Dataset
from augury.data.folder import check_wide, common_size, read_header, sizes_note, to_pixels
from augury.data.layout import as_array, scaled_to
from augury.data.targets import Options, Part, assemble

INPUT_KEYS = ("image", "img", "pixel_values", "x", "input", "inputs", "audio", "signal", "points")
"""Under which names dictionaries keep the input, in the order in which they are tried."""


def read_torch_dataset(data: Any, options: Options, test: Any = None) -> Dataset:
    """Read every example of a map-style data set."""
    xs, ys, label_key = examples(data, options.progress)
    headers = [read_header(x) for x in xs if isinstance(x, Image.Image)]
    colour, held_out = any(h.colour for h in headers), None
    size = options.size or common_size(headers, options.side) if headers else None

    def part(xs: list[Any], ys: list[Any], kind: str | None = None) -> tuple[Part, str]:
        return (
            _pictures(xs, ys, colour, size) if headers else part_of(_stacked(xs), _labels(ys), options, kind)
        )

    train, kind = part(xs, ys)
    if headers:
        check_wide(headers, train.x)
    if test is not None:
        held_out, _ = part(*examples(test, options.progress)[:2], kind)
    source = f"{type(data).__module__.split('.')[0]}.{type(data).__name__} of {len(data)}"
    names = class_names(data, label_key)
    return assemble(train, held_out, options, kind=kind, source=source, class_names=names)


def examples(data: Any, progress: Progress = silent) -> tuple[list[Any], list[Any], str]:
    """Return the inputs and the labels of every example."""
    if len(data) == 0:
        raise InputError(f"the data set ({type(data).__name__}) must hold at least one example; it is empty.")
    xs, ys, label_key = [], [], ""
    for i in range(len(data)):
        example = data[i]
        if isinstance(example, Mapping):
            input_key, label_key = _key(example, INPUT_KEYS, "input"), _key(example, LABEL_COLUMNS, "label")
            x, y = example[input_key], example[label_key]
        elif isinstance(example, tuple | list) and len(example) >= 2:
            x, y = example[0], example[1]
        else:
            raise InputError(
                f"an example must be a pair (input, label) or a dictionary; example {i} is a {type(example).__name__}"
                f"{f' of {len(example)}' if isinstance(example, tuple | list) else ''}. Whole arrays are passed as "
                f"(inputs, labels), with test=(inputs, labels)."
            )
        xs.append(x)
        ys.append(y)
        progress("reading examples", i + 1, len(data))
    return xs, ys, label_key


def _key(example: Mapping[str, Any], keys: tuple[str, ...], what: str) -> str:
    for key in keys:
        if key in example:
            return key
    raise InputError(
        f"a dictionary example must keep its {what} under one of {', '.join(keys)}; "
        f"it has {', '.join(map(str, example))}. Rename the column."
    )


def _pictures(xs: list[Any], ys: list[Any], colour: bool, size: tuple[int, int] | None) -> tuple[Part, str]:
    pixels = torch.from_numpy(np.stack([to_pixels(x, colour, size) for x in xs]))
    note = sizes_note(map(read_header, xs), size)
    return Part(pixels, as_array(_labels(ys)), layout=note, scaling=scaled_to(float(pixels.max()))), "image"


def _stacked(xs: list[Any]) -> np.ndarray:
    arrays = [as_array(x) for x in xs]
    for i, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise InputError(
                f"examples must all have one shape; example 0 has {list(arrays[0].shape)}, example {i} has "
                f"{list(array.shape)}. Resize them in the data set's transform."
            )
    return np.stack(arrays)


def _labels(ys: list[Any]) -> Any:
    return torch.stack(ys) if isinstance(ys[0], Tensor) else ys


def class_names(data: Any, label_key: str) -> tuple[str, ...]:
    """Return the names of the classes, if the data set or the one that it is a subset of has them."""
    while True:
        features = getattr(data, "features", None)
        if label_key and isinstance(features, Mapping):
            return tuple(map(str, getattr(features.get(label_key), "names", None) or ()))
        names = getattr(data, "classes", None)
        if isinstance(names, tuple | list):
            return tuple(map(str, names))
        inner = getattr(data, "dataset", None) or next(iter(getattr(data, "datasets", ())), None)
        if inner is None:
            return ()
        data = inner
