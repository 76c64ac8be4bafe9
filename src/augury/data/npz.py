"""numpy's `.npz` files: `x_train, y_train, x_test, y_test`, or `x, y` to be split. Nothing is unpickled."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from augury.core.errors import InputError
from augury.data.arrays import read_arrays
from augury.data.assemble import Options
from augury.data.dataset import Dataset

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
