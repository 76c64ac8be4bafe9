"""Reads data from any source: a name, a folder, an `.npz` file, arrays, data frames, torch data sets or a `Dataset`."""

from collections.abc import Iterable, Mapping, Sized
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from augury.core.errors import InputError, choose
from augury.core.files import Progress, silent
from augury.data.arrays import frame_pair, holds_arrays, open_arrays, read_arrays, read_table
from augury.data.dataset import SMALLEST_IMAGE, Dataset
from augury.data.named import NAMED, load_named
from augury.data.split import named_splits, train_and_test
from augury.data.targets import Options
from augury.data.variants import DESCRIPTORS, VARIANTS, coloured_rotated, plant, toy, variant_names

COLOURED = "coloured_rotated"
TOY_VARIANTS = {None: 0.0, "rotated": 180.0, "partially_rotated": 90.0}


def load(
    source: Any,
    *,
    variant: str | None = None,
    subset: int | None = None,
    test: Any = None,
    test_fraction: float = 0.2,
    seed: int = 0,
    skip_bad: bool = False,
    size: int | tuple[int, int] | None = None,
    side: int | None = None,
    task: str | None = None,
    kind: str | None = None,
    progress: Progress = silent,
) -> Dataset:
    """Read a data set.

    Parameters
    ----------
    source
        A name ("mnist5k", ...), a folder of images, an `.npz` file, a folder of `.npy` files, a pair (inputs, labels),
        a mapping of arrays or of splits, a data frame with a column of labels, a map-style torch data set or a loader
        of one, or a `Dataset`. Inputs that are too large for memory stay on disk.
    variant
        Invariance to plant: "rotated", "partially_rotated", "translated", "scaled" (joined by "+"), "coloured_rotated".
    subset
        How many training examples to keep, drawn at random.
    test
        A test set, given in the same way as `source`. Default: the source's own, else a split.
    test_fraction
        Share of every class for the test set, if there is none.
    seed
        Seed of split, subset and variant. Named sets have one split for all seeds.
    skip_bad
        Whether to skip images that cannot be read; they are listed in `Dataset.skipped`.
    size
        Height and width to resize images to. Default for image files: the most common size; if hardly two are of
        one size, a square as long as the median of their shorter sides.
    side
        Longer side to which larger image files are reduced where `size` is None. Default: none; `augury.learn` takes
        one that its network can serve.
    task
        "classification" or "regression", inferred if None; with "coloured_rotated": "digit", "rotation" or "colour".
    kind
        "image", "signal", "points", "coordinates" or "features"; inferred from the shape if None.
    progress
        Called with what is being read, how much of it is done, and how much there is.

    Returns
    -------
    Dataset
        The record.
    """
    if variant is not None and "+" in variant:
        variant_names(variant)
    elif variant is not None:
        choose("variant", variant, [*VARIANTS, COLOURED])
    coloured = choose("task", task or "digit", DESCRIPTORS) if variant == COLOURED else ""
    task = None if coloured else task
    options = Options(task, test_fraction, seed, kind, checked_size(size), side, skip_bad, progress)
    if isinstance(source, str) and source == "toy":
        choose("variant of the toy data", variant or "rotated", [v for v in TOY_VARIANTS if v])
        data, variant = toy(TOY_VARIANTS[variant], seed=seed), None
    else:
        data = read(source, options, test)
    data = data if subset is None else data.subset(subset, seed)
    if coloured:
        return coloured_rotated(data, coloured, seed)
    return data if variant is None else plant(data, variant, seed)


def checked_size(size: Any) -> tuple[int, int] | None:
    """Return a size as height and width."""
    if size is None:
        return None
    sides = (size, size) if isinstance(size, int) else size
    if not (isinstance(sides, tuple | list) and len(sides) == 2 and all(isinstance(n, int) for n in sides)):
        raise InputError(f"size must be a number of pixels, or (height, width); got {size!r}.")
    height, width = sides
    if min(height, width) < SMALLEST_IMAGE:
        raise InputError(f"size must be at least {SMALLEST_IMAGE} pixels on each side; got {height} x {width}.")
    return height, width


def read(source: Any, options: Options, test: Any = None) -> Dataset:
    """Call the reader of a source."""
    if isinstance(source, str) and source in NAMED:
        _refuse(test=test, size=options.size, kind=options.kind)
        return load_named(source, options)
    if isinstance(source, Dataset):
        _refuse(test=test, size=options.size, kind=options.kind, task=options.task)
        return source
    if isinstance(source, str | Path):
        _check_test(test, "a path", isinstance(test, str | Path))
        return _read_path(_existing(source), options, None if test is None else _existing(test))
    columns = getattr(source, "columns", None)
    source, test = _plain(source), _plain(test, columns)
    if isinstance(source, Mapping):
        if not named_splits(source):
            _check_test(test, "a mapping of arrays", isinstance(test, Mapping))
            return read_table(source, options, test=test)
        train, name, said = train_and_test(source, "a mapping of splits")
        if test is not None or name is None:
            return read(source[train], options, test)
        return replace(read(source[train], options, source[name]), remark=said)
    two = test is None and isinstance(source, tuple | list) and len(source) == 2
    if two and all(isinstance(part, TorchDataset | DataLoader) for part in source):
        source, test = map(_plain, source)  # as random_split gives them
    arrays = isinstance(source, list) and all(isinstance(part, np.ndarray | Tensor) for part in source)
    if len(source) == 2 if arrays else isinstance(source, tuple) and len(source) == 2:
        if all(isinstance(part, tuple) and len(part) == 2 for part in source):  # as Keras gives them
            source, test = source
        _check_test(test, "a pair (inputs, labels)", isinstance(test, tuple | list) and len(test) == 2)
        return read_arrays(tuple(source), options, test=test)
    if isinstance(source, np.ndarray | Tensor):
        raise InputError(
            f"data must have labels; got an array of shape {list(source.shape)} alone. Pass a pair: (inputs, labels)."
        )
    if _map_style(source):
        from augury.data.torch_dataset import read_torch_dataset

        _check_test(test, "a map-style data set", _map_style(test) and not isinstance(test, NO_EXAMPLES))
        return read_torch_dataset(source, options, test)
    stream = " It has no length: collect it first, as list(...)." if isinstance(source, Iterable) else ""
    raise InputError(
        f"data must be a name, a folder, an .npz file, a pair (inputs, labels), a mapping of arrays or splits, a data "
        f"frame, a map-style torch data set or a Dataset; got {type(source).__name__}.{stream}"
    )


NO_EXAMPLES = (str, Mapping, tuple, np.ndarray, Tensor)
"""What has items that are not examples."""


def _map_style(source: Any) -> bool:
    return isinstance(source, Sized) and callable(getattr(source, "__getitem__", None))


def _check_test(test: Any, form: str, fits: bool) -> None:
    if test is not None and not fits:
        got = f"{type(test).__name__}{f' of {len(test)}' if isinstance(test, tuple | list) else ''}"
        raise InputError(f"the test set must be {form}, as the training set is; got {got}.")


def _plain(source: Any, columns: Any = None) -> Any:
    """Return the data set of a loader, and the inputs and labels of a data frame; anything else as it is."""
    if isinstance(source, DataLoader):
        return source.dataset
    is_frame = hasattr(source, "columns") and hasattr(source, "dtypes")
    return frame_pair(source, columns) if is_frame else source


def _read_path(path: Path, options: Options, test: Path | None) -> Dataset:
    if test is not None and path.is_dir() != test.is_dir():
        raise InputError(f"data and test set must both be folders, or both .npz files; got {path} and {test}.")
    if holds_arrays(path):
        held_out = None if test is None else open_arrays(test)
        what = "folder" if path.is_dir() else "file"
        return read_table(open_arrays(path), options, test=held_out, source=f"{what} {path}")
    if any((path / name).is_file() for name in ("metrics.jsonl", "adaptation.json", "audit.json")):
        raise InputError(f"{path} is the folder of a run, not of data. Name the data that it was made from.")
    if path.is_dir():
        from augury.data.folder import read_folder

        _refuse(kind=None if options.kind == "image" else options.kind)
        return read_folder(path, options, test)
    raise InputError(f"a data file must be an .npz; got {path}. Save arrays with np.savez(path, x=..., y=...).")


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} cannot be chosen for this source; got {name}={value!r}. Leave it out.")


def _existing(source: Any) -> Path:
    path = Path(source).expanduser()
    if path.exists():
        return path
    near = get_close_matches(str(source), NAMED, n=1, cutoff=0.6)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise InputError(
        f"data must be one of {', '.join(sorted(NAMED))}, a folder of images or an .npz file; got '{source}', and "
        f"there is no file or folder of that name here.{hint}"
    )
