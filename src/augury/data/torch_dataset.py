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
from augury.data.arrays import as_array, infer_kind, to_inputs
from augury.data.assemble import Options, Part, assemble
from augury.data.dataset import Dataset
from augury.data.folder import common_size, read_header, to_pixels

INPUT_KEYS = ("image", "img", "pixel_values", "x", "input", "inputs", "audio", "signal", "points")
LABEL_KEYS = ("label", "labels", "y", "target", "targets", "fine_label", "class")
"""Under which names dictionaries keep the input and the label, in the order in which they are tried."""


def read_torch_dataset(
    data: Any,
    options: Options,
    *,
    test: Any = None,
    kind: str | None = None,
    size: tuple[int, int] | None = None,
    progress: Progress = silent,
) -> Dataset:
    """Read every example of a map-style data set."""
    xs, ys, label_key = examples(data, progress)
    colour = False
    if isinstance(xs[0], Image.Image):
        headers = [read_header(x) for x in xs]
        colour = any(h.colour for h in headers)
        size, kind = size or common_size(headers), "image"
    x = _stack(xs, colour, size)
    kind = infer_kind(x, kind)
    part = Part(to_inputs(x, kind), _labels(ys))
    part_test = None
    if test is not None:
        xs_test, ys_test, _ = examples(test, progress)
        part_test = Part(to_inputs(_stack(xs_test, colour, size), kind), _labels(ys_test))
    source = f"{type(data).__module__.split('.')[0]}.{type(data).__name__} of {len(data)}"
    return assemble(
        part, part_test, options, kind=kind, source=source, class_names=class_names(data, label_key)
    )


def examples(data: Any, progress: Progress = silent) -> tuple[list[Any], list[Any], str]:
    """Return the inputs and the labels of every example."""
    if len(data) == 0:
        raise InputError(f"the data set ({type(data).__name__}) must hold at least one example; it is empty.")
    xs, ys, label_key = [], [], ""
    for i in range(len(data)):
        example = data[i]
        if isinstance(example, Mapping):
            input_key, label_key = _key(example, INPUT_KEYS, "input"), _key(example, LABEL_KEYS, "label")
            x, y = example[input_key], example[label_key]
        elif isinstance(example, tuple | list) and len(example) >= 2:
            x, y = example[0], example[1]
        else:
            raise InputError(
                f"an example must be a pair (input, label) or a dictionary; example {i} is a {type(example).__name__}."
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


def _stack(xs: list[Any], colour: bool, size: tuple[int, int] | None) -> np.ndarray:
    arrays = [to_pixels(x, colour, size) if isinstance(x, Image.Image) else as_array(x) for x in xs]
    for i, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise InputError(
                f"examples must all have one shape; example 0 has {list(arrays[0].shape)}, example {i} has "
                f"{list(array.shape)}. Resize them in the data set's transform."
            )
    return np.stack(arrays)


def _labels(ys: list[Any]) -> np.ndarray:
    if isinstance(ys[0], Tensor):
        return as_array(torch.stack(ys))
    return as_array(ys)


def class_names(data: Any, label_key: str) -> tuple[str, ...]:
    """Return the names of the classes, where the data set tells them."""
    features = getattr(data, "features", None)
    if label_key and isinstance(features, Mapping):
        return tuple(map(str, getattr(features.get(label_key), "names", None) or ()))
    names = getattr(data, "classes", None)
    return tuple(map(str, names)) if isinstance(names, tuple | list) else ()
