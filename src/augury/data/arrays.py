"""numpy arrays, torch tensors or nested lists that the user already holds.

numpy's `.npz` files: `x_train, y_train, x_test, y_test`, or `x, y` to be split. Nothing is unpickled.

From arrays as people keep them to float32 tensors in the library's layout.

- Unsigned bytes are divided by 255 and 16-bit values by 65,535; other integers must lie in 0 to 255 and are divided
  by 255. Floats stay as they are, unless all of them are whole numbers up to 255: those are bytes that somebody cast.
- Images come as [N, H, W], [N, H, W, C] or [N, C, H, W] and leave as [N, C, H, W]. The channels are last if the last
  axis is 1, 3 or 4 long and the second is not.
"""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.data.assemble import Options, Part, assemble
from augury.data.dataset import SHAPES, Dataset


def read_arrays(
    pair: tuple[Any, Any],
    options: Options,
    *,
    test: tuple[Any, Any] | None = None,
    kind: str | None = None,
    class_names: tuple[str, ...] = (),
    source: str = "arrays",
) -> Dataset:
    """Make a data set of arrays."""
    x, y = map(as_array, pair)
    kind = infer_kind(x, kind)
    train = Part(to_inputs(x, kind), y)
    part_test = None
    if test is not None:
        x_test, y_test = map(as_array, test)
        part_test = Part(to_inputs(x_test, kind), y_test)
    return assemble(train, part_test, options, kind=kind, source=source, class_names=class_names)


LAYOUTS = (
    ("x_train", "y_train", "x_test", "y_test"),
    ("train_images", "train_labels", "test_images", "test_labels"),
    ("x_train", "y_train"),
    ("x", "y"),
)
"""Names of the arrays, in the order in which they are looked for; the second is that of the MedMNIST files."""

NAMES = ("classes", "class_names")
"""Optional array of text: the names of the classes."""


def read_npz(
    path: Path,
    options: Options,
    *,
    test: Path | None = None,
    kind: str | None = None,
    class_names: tuple[str, ...] = (),
    source: str | None = None,
) -> Dataset:
    """Read an `.npz` file."""
    arrays = open_npz(path)
    layout = _layout(path, arrays)
    train, held_out = layout[:2], layout[2:]
    named = next((arrays[key] for key in NAMES if key in arrays), None)
    if named is not None and not class_names:
        class_names = tuple(map(str, named.tolist()))
    pair_test = None
    if test is not None:
        arrays_test = open_npz(test)
        layout_test = _layout(test, arrays_test)
        pair_test = arrays_test[layout_test[0]], arrays_test[layout_test[1]]
    elif held_out:
        pair_test = arrays[held_out[0]], arrays[held_out[1]]
    pair = arrays[train[0]], arrays[train[1]]
    return read_arrays(
        pair, options, test=pair_test, kind=kind, class_names=class_names, source=source or f"file {path}"
    )


def open_npz(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of a file."""
    try:
        with (
            path.open("rb") as file,
            np.load(file, allow_pickle=False) as arrays,
        ):  # numpy leaves a bad file open
            return {key: arrays[key] for key in arrays.files}
    except (
        OSError,
        EOFError,
        ValueError,
        AttributeError,
        TypeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise InputError(
            f"{path} must be a whole .npz file of plain arrays; it cannot be read: {error}. "
            f"Is it cut short, or does it hold pickled objects (which are never loaded)?"
        ) from error


def _layout(path: Path, arrays: dict[str, np.ndarray]) -> tuple[str, ...]:
    for layout in LAYOUTS:
        if all(key in arrays for key in layout):
            return layout
    raise InputError(
        f"{path} must hold x_train, y_train, x_test, y_test (or x, y); it holds {', '.join(arrays) or 'nothing'}. "
        f"Save it with np.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)."
    )


CHANNELS = (1, 3, 4)
"""Lengths by which an axis of channels is recognised: grey, RGB, RGBA."""


def as_array(values: Any) -> np.ndarray:
    """Return a tensor, an array or nested lists as a numpy array of numbers or text."""
    if isinstance(values, Tensor):
        return (
            values
            .detach()
            .to("cpu", torch.float32 if values.dtype == torch.bfloat16 else values.dtype)
            .numpy()
        )
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(
            f"examples must all have one shape; got a list of different ones ({error})."
        ) from error
    if array.dtype.kind not in "biufUS":
        raise InputError(
            f"arrays must hold numbers (or text labels); got dtype {array.dtype}. Nothing is unpickled."
        )
    return array


def infer_kind(x: np.ndarray, kind: str | None = None) -> str:
    """Say what the inputs are, from their shape, unless the user said it."""
    if kind is not None:
        return choose("kind", kind, SHAPES)
    if x.ndim == 4:
        return "image"
    if x.ndim == 3:
        if x.shape[-1] == 3:
            return "points"
        return "image" if x.dtype == np.uint8 or x.shape[1] == x.shape[2] else "signal"
    if x.ndim == 2 and x.shape[-1] == 2:
        return "coordinates"
    return "features"


def to_inputs(x: np.ndarray, kind: str) -> Tensor:
    """Return inputs as a float32 tensor in the layout of their kind."""
    if x.dtype.kind not in "biuf":
        raise InputError(f"inputs must be numbers; got dtype {x.dtype}.")
    values = np.array(x, dtype=np.float32, order="C")
    if kind == "image":
        if divisor := _divisor(x):
            values /= divisor
        return torch.from_numpy(np.ascontiguousarray(channels_first(values)))
    return torch.from_numpy(values)


def _divisor(x: np.ndarray) -> float:
    """Return what to divide pixels by; 0 for nothing."""
    if x.dtype.kind == "b" or x.size == 0:
        return 0.0
    if x.dtype.kind == "f":
        if _bytes_cast_to_floats(x):
            raise InputError(
                f"float pixels must lie in [0, 1] or be standardised; got whole numbers up to {x.max():g}, "
                f"which look like bytes. Divide by 255, or pass them as uint8."
            )
        return 0.0
    if x.dtype == np.uint16:
        return 65535.0
    if x.dtype != np.uint8 and not 0 <= x.min() <= x.max() <= 255:
        raise InputError(
            f"integer pixels must lie in 0 to 255 (or be uint16); got {x.dtype} from {x.min()} to {x.max()}. "
            f"Scale them to floats in [0, 1]."
        )
    return 255.0


def _bytes_cast_to_floats(x: np.ndarray) -> bool:
    low, high = x.min(), x.max()  # NaN fails every comparison, and is reported where finiteness is checked
    return bool(low >= 0 and 16 <= high <= 255 and np.array_equal(x, np.round(x)))


def channels_first(x: np.ndarray) -> np.ndarray:
    """Return images as [N, C, H, W]."""
    if x.ndim == 3:
        return x[:, None]
    if x.ndim == 4 and x.shape[-1] in CHANNELS and x.shape[1] not in CHANNELS:
        return x.transpose(0, 3, 1, 2)
    return x
