"""Any map-style data set: torch's, torchvision's (pairs with a Pillow picture), Hugging Face's (dictionaries), a list.

An example is a pair (input, label) or a dictionary with an input and a label under one of the usual names. Inputs are
tensors, arrays or pictures, of one shape each (pictures of mixed sizes are brought to one, as in a folder).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from augury.core.errors import InputError
from augury.core.files import Progress
from augury.data.arrays import LABEL_COLUMNS, part_of
from augury.data.dataset import Dataset
from augury.data.layout import as_array, scaled_to, to_inputs
from augury.data.pictures import check_wide, common_size, pixel_type, read_header, sizes_note, to_pixels, to_type
from augury.data.rows import is_large
from augury.data.stored import spilled
from augury.data.targets import Options, Part, assemble

INPUT_KEYS = ("image", "img", "pixel_values", "x", "input", "inputs", "audio", "signal", "points")
"""Under which names dictionaries keep the input, in the order in which they are tried."""


Form = tuple[bool, tuple[int, int]]  # whether pictures have colour, and their size


def read_torch_dataset(data: Any, options: Options, test: Any = None) -> Dataset:
    """Read every example of a map-style data set, once; too many for memory go to a file that ends with the process.

    Not example by example during training: an evidence compares widths on the same inputs, and those of a data set with
    random transforms would change from pass to pass. Too many pictures are read twice, for their sizes first.
    """
    train, form = _read(data, options)
    held_out = None if test is None else _read(test, options, train.kind, form)[0]
    source = f"{type(data).__module__.split('.')[0]}.{type(data).__name__} of {len(data)}"
    names = class_names(data, _label_key(data[0]))
    return assemble(train, held_out, options, source=source, class_names=names)


def _read(data: Any, options: Options, kind: str | None = None, form: Form | None = None) -> tuple[Part, Form | None]:
    if len(data) == 0:
        raise InputError(f"the data set ({type(data).__name__}) must hold at least one example; it is empty.")
    first, _ = example(data, 0)
    if isinstance(first, Image.Image):
        return _pictures(data, options, form, is_large((len(data), len(first.getbands()), *first.size)))
    ys: list[Any] = []
    arrays = _alike(as_array(x) for x in examples(data, options.progress, ys))
    large = is_large((len(data), *as_array(first).shape))
    stacked = spilled(arrays, len(data)) if large else np.stack(list(arrays))
    return part_of(stacked, _labels(ys), options, kind), None


def _pictures(data: Any, options: Options, form: Form | None, large: bool) -> tuple[Part, Form]:
    ys: list[Any] = []
    headers, xs = [], []
    for picture in examples(data, options.progress, ys):
        headers.append(read_header(picture))
        xs.extend([] if large else [picture])
    colour, size = form or (any(h.colour for h in headers), options.size or common_size(headers, options.side))
    pixels = (to_pixels(x, colour, size) for x in (examples(data, options.progress, []) if large else xs))
    if large:
        dtype = pixel_type(headers)
        x = to_inputs(spilled((to_type(row, dtype) for row in pixels), len(data)), "image")
    else:
        x = torch.from_numpy(np.stack(list(pixels)))
    if form is None:
        check_wide(headers, x)
    scaled = scaled_to(float(x.max()))
    part = Part(x, as_array(_labels(ys)), layout=sizes_note(headers, size), scaling=scaled)
    return part, (colour, size)


def examples(data: Any, progress: Progress, ys: list[Any]) -> Iterator[Any]:
    """Give the input of every example, and add its label to a list."""
    for i in range(len(data)):
        x, y = example(data, i)
        ys.append(y)
        yield x
        progress("reading examples", i + 1, len(data))


def example(data: Any, i: int) -> tuple[Any, Any]:
    """Return input and label of an example."""
    found = data[i]
    if isinstance(found, Mapping):
        return found[_key(found, INPUT_KEYS, "input")], found[_label_key(found)]
    if isinstance(found, tuple | list) and len(found) >= 2:
        return found[0], found[1]
    raise InputError(
        f"an example must be a pair (input, label) or a dictionary; example {i} is a {type(found).__name__}"
        f"{f' of {len(found)}' if isinstance(found, tuple | list) else ''}. Whole arrays are passed as "
        f"(inputs, labels), with test=(inputs, labels)."
    )


def _label_key(found: Any) -> str:
    return _key(found, LABEL_COLUMNS, "label") if isinstance(found, Mapping) else ""


def _key(example: Mapping[str, Any], keys: tuple[str, ...], what: str) -> str:
    for key in keys:
        if key in example:
            return key
    raise InputError(
        f"a dictionary example must keep its {what} under one of {', '.join(keys)}; "
        f"it has {', '.join(map(str, example))}. Rename the column."
    )


def _alike(arrays: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    first = None
    for i, array in enumerate(arrays):
        first = array if first is None else first
        if array.shape != first.shape:
            raise InputError(
                f"examples must all have one shape; example 0 has {list(first.shape)}, example {i} has "
                f"{list(array.shape)}. Resize them in the data set's transform."
            )
        yield array


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
