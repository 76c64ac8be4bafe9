"""Arrays that the user already holds, and `.npz` files of them: pairs, tables of named arrays, data frames.

A table names its arrays `x_train, y_train, x_test, y_test`, or `x, y` to be split, or as MedMNIST and scikit-learn do.
Nothing is unpickled.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from augury.core.errors import AuguryError, InputError
from augury.data.dataset import Dataset
from augury.data.layout import as_array, infer_kind, moved, scaling, to_inputs
from augury.data.rows import Rows, chunks
from augury.data.split import named_splits
from augury.data.stored import read_member, read_npy, spilled
from augury.data.targets import Options, Part, assemble

NAMES = (
    ("x_train", "y_train", "x_test", "y_test"),
    ("train_images", "train_labels", "test_images", "test_labels"),
    ("x_train", "y_train", "x_val", "y_val"),
    ("train_images", "train_labels", "val_images", "val_labels"),
    ("x_train", "y_train"),
    *((x, y) for x in ("images", "image", "data", "x") for y in ("target", "y", "labels", "label")),
)
"""Names of the arrays of a table, in any case, in the order in which they are looked for."""

CLASS_NAMES = ("classes", "class_names", "target_names")  # optional array of text: the names of the classes

LABEL_COLUMNS = ("label", "labels", "y", "target", "targets", "class", "fine_label")
"""Names of a column (or a field of an example) that holds the labels, in any case, as they are tried."""


def part_of(x: Any, y: Any, options: Options, kind: str | None = None) -> Part:
    """Return one part of a data set made of arrays."""
    array, labels = as_array(x), as_array(y)
    if not (array.ndim and labels.ndim):
        raise InputError(f"inputs and labels must be arrays of examples; got {x!r:.30} and {y!r:.30}.")
    labels = np.require(labels, labels.dtype.newbyteorder("="), "W")  # or torch would warn, or refuse them
    kind = infer_kind(array, kind or options.kind)
    inputs, layout = to_inputs(array, kind), moved(array, kind)[1]
    if options.size is not None:
        from augury.data.pictures import resized

        if kind != "image":
            raise InputError(f"size is for images; got size={options.size} for data of kind '{kind}'. Leave it out.")
        if isinstance(inputs, Rows):
            parts = (resized(part, options.size).numpy() for part in chunks(inputs))
            inputs = Rows(spilled((row for part in parts for row in part), len(inputs)))
        else:
            inputs = resized(inputs, options.size)
        layout = "; ".join(filter(None, (layout, "resized")))
    return Part(inputs, labels, layout=layout, scaling=scaling(array, kind), kind=kind)


def read_arrays(
    pair: tuple[Any, Any],
    options: Options,
    *,
    test: tuple[Any, Any] | None = None,
    class_names: tuple[str, ...] = (),
    source: str = "arrays",
    remark: str = "",
) -> Dataset:
    train = part_of(*pair, options)
    held_out = None if test is None else part_of(*test, options, train.kind)
    return assemble(train, held_out, options, source=source, class_names=class_names, remark=remark)


def read_table(
    table: Mapping[str, Any],
    options: Options,
    *,
    test: Mapping[str, Any] | None = None,
    class_names: tuple[str, ...] = (),
    source: str = "arrays",
) -> Dataset:
    """Make a data set of named arrays."""
    arrays = {str(key).lower(): value for key, value in table.items()}
    names = _names(arrays, source)
    if not class_names:
        named = next((arrays[key] for key in CLASS_NAMES if arrays.get(key) is not None), ())
        class_names = tuple(map(str, np.asarray(named).ravel().tolist()))
    pair = arrays[names[0]], arrays[names[1]]
    held_out = (arrays[names[2]], arrays[names[3]]) if names[2:] else None
    unused = [key for key in arrays if key not in names and named_splits(key.split("_"))]
    remark = f"{' and '.join(unused)} not used" if unused else ""
    remark = f"{names[2]} as test set" if "val" in "".join(names[2:]) else remark
    if test is not None:
        others = {str(key).lower(): value for key, value in test.items()}
        of_test = _names(others, "the test set")
        held_out = others[of_test[0]], others[of_test[1]]
        remark = ""
    return read_arrays(pair, options, test=held_out, class_names=class_names, source=source, remark=remark)


def _names(arrays: Mapping[str, Any], source: str) -> tuple[str, ...]:
    for names in NAMES:
        if all(arrays.get(name) is not None for name in names):
            return names
    raise InputError(
        f"{source} must hold x_train, y_train, x_test, y_test (or x, y); it holds {', '.join(arrays) or 'nothing'}. "
        f"Save it with np.savez(path, x_train=..., y_train=..., x_test=..., y_test=...), or pass a pair (x, y)."
    )


def holds_arrays(path: Path) -> bool:
    """Say whether a path is an `.npz` file, an `.npy` file or a folder of these."""
    return path.suffix in (".npz", ".npy") or (path.is_dir() and any(path.glob("*.npy")))


def open_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of an `.npz` file, of an `.npy` file (called x), or of a folder of these, by name."""
    try:
        if path.is_dir():
            return {file.stem: read_npy(file) for file in sorted(path.glob("*.npy"))}
        if path.suffix == ".npy":
            return {"x": read_npy(path)}
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:  # numpy leaves a bad file open
            mapped = {key: read_member(path, arrays.zip, key) for key in arrays.files}
            return {key: arrays[key] if array is None else array for key, array in mapped.items()}
    except AuguryError:
        raise
    except Exception as error:  # a damaged file raises any of a dozen
        raise InputError(
            f"{path} must be a whole .npz file of plain arrays; it cannot be read: {error}. "
            f"Is it cut short, or does it hold pickled objects (which are never loaded)?"
        ) from error


def frame_pair(frame: Any, like: Any = None) -> tuple[Any, Any]:
    """Return inputs and labels of a data frame: a column of labels, all others numbers, in the order of `like`."""
    columns = {str(column).lower(): column for column in frame.columns}
    labels = [columns[name] for name in LABEL_COLUMNS if name in columns]
    if not labels:
        raise InputError(
            f"a data frame must keep its labels in a column named {', '.join(LABEL_COLUMNS)}; it has "
            f"{', '.join(map(str, frame.columns))}. Pass a pair: (frame[features], frame[labels])."
        )
    if len(labels) > 1:
        both = " and ".join(map(str, labels))
        raise InputError(f"{both} can both be the labels. Drop one, or pass a pair: (frame[features], frame[labels]).")
    if twice := [str(name) for name, n in Counter(frame.columns).items() if n > 1]:
        raise InputError(f"the columns must have different names; twice: {', '.join(twice)}. Rename them.")
    names = [column for column in (frame.columns if like is None else like) if column != labels[0]]
    if not set(names) <= set(frame.columns):
        own = ", ".join(str(name) for name in frame.columns if name != labels[0])
        raise InputError(f"the test set must have the columns {', '.join(map(str, names))}; it has {own}.")
    inputs = frame[names]
    text = [str(name) for name, dtype in inputs.dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]
    if text:
        raise InputError(
            f"every column but the labels must hold numbers; not so: {', '.join(text)}. Drop or encode them."
        )
    return inputs, frame[labels[0]]
