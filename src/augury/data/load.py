"""One door for all data: a name, a folder of images, an `.npz` file, arrays, a torch data set, or a `Dataset`.

The last step of every reader: inputs and labels as they were read, made into a `Dataset`.
"""

from collections.abc import Sized
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from augury.core.errors import InputError, choose
from augury.core.files import Progress, silent
from augury.data.assemble import Options
from augury.data.coloured import DESCRIPTORS, coloured_rotated
from augury.data.dataset import SMALLEST_IMAGE, Dataset
from augury.data.named import NAMED, load_named
from augury.data.toy import toy
from augury.data.variants import VARIANTS, plant, variant_names

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
    task: str | None = None,
    kind: str | None = None,
    progress: Progress = silent,
) -> Dataset:
    """Return a data set, wherever it comes from.

    Parameters
    ----------
    source
        A name ("mnist5k", "cifar10", ...), a folder with one sub-folder of images per class, an `.npz` file, a pair
        (inputs, labels) of arrays or tensors, any map-style torch data set, or a `Dataset`.
    variant
        A truth to plant: "rotated", "partially_rotated", "translated", "scaled", several joined by "+", or
        "coloured_rotated".
    subset
        How many training examples to keep, drawn at random.
    test
        A test set, given in the same way as `source`; None for the source's own, or else a split.
    test_fraction
        Share set aside where there is no test set; the same of every class.
    seed
        Seed of split, subset and variant. Named sets have one split for all seeds.
    skip_bad
        Whether to pass over images that cannot be read; they are listed in `Dataset.skipped`.
    size
        Height and width to bring pictures to; the most common size where None.
    task
        "classification" or "regression", inferred where None; with "coloured_rotated": "digit", "rotation" or "colour".
    kind
        "image", "signal", "points", "coordinates" or "features"; inferred from the shape where None.
    progress
        Told how far a long read is.

    Returns
    -------
    Dataset
        The record.
    """
    if variant is not None and variant != COLOURED:
        _check_variant(variant)
    coloured_task = choose("task", task or "digit", DESCRIPTORS) if variant == COLOURED else None
    options = Options(None if coloured_task else task, test_fraction, seed)
    if isinstance(source, str) and source == "toy":
        choose("variant of the toy data", variant or "rotated", [v for v in TOY_VARIANTS if v])
        data, variant = toy(TOY_VARIANTS[variant], seed=seed), None
    else:
        data = read(
            source, options, test=test, skip_bad=skip_bad, size=_size(size), kind=kind, progress=progress
        )
    if subset is not None:
        data = data.subset(subset, seed)
    if coloured_task:
        return coloured_rotated(data, coloured_task, seed)
    return data if variant is None else plant(data, variant, seed)


def _check_variant(variant: str) -> None:
    if "+" in variant:
        variant_names(variant)
    else:
        choose("variant", variant, [*VARIANTS, COLOURED])


def _size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    height, width = (size, size) if isinstance(size, int) else size
    if min(height, width) < SMALLEST_IMAGE:
        raise InputError(
            f"size must be at least {SMALLEST_IMAGE} pixels on each side; got {height} x {width}."
        )
    return height, width


def read(
    source: Any,
    options: Options,
    *,
    test: Any = None,
    skip_bad: bool = False,
    size: tuple[int, int] | None = None,
    kind: str | None = None,
    progress: Progress = silent,
) -> Dataset:
    """Find out what a source is and call its reader."""
    if isinstance(source, str) and source in NAMED:
        _refuse(test=test, size=size, kind=kind)
        return load_named(source, options)
    if isinstance(source, Dataset):
        _refuse(test=test, size=size, kind=kind, task=options.task)
        return source
    if isinstance(source, str | Path):
        return _read_path(_existing(source), options, test, skip_bad, size, kind, progress)
    if isinstance(source, tuple) and len(source) == 2:
        from augury.data.arrays import read_arrays

        _refuse(size=size)
        return read_arrays(source, options, test=test, kind=kind)
    if isinstance(source, Sized) and callable(getattr(source, "__getitem__", None)):
        from augury.data.torch_dataset import read_torch_dataset

        return read_torch_dataset(source, options, test=test, kind=kind, size=size, progress=progress)
    raise InputError(
        f"data must be a name, a folder, an .npz file, a pair (inputs, labels), a map-style torch data set or a "
        f"Dataset; got {type(source).__name__}. An iterable data set has no length: collect it first."
    )


def _read_path(
    path: Path,
    options: Options,
    test: Any,
    skip_bad: bool,
    size: tuple[int, int] | None,
    kind: str | None,
    progress: Progress,
) -> Dataset:
    place = None if test is None else _existing(test)
    if path.is_dir():
        from augury.data.folder import read_folder

        _refuse(kind=None if kind == "image" else kind)
        return read_folder(path, options, test=place, size=size, skip_bad=skip_bad, progress=progress)
    if path.suffix == ".npz":
        from augury.data.arrays import read_npz

        _refuse(size=size)
        return read_npz(path, options, test=place, kind=kind)
    raise InputError(
        f"a data file must be an .npz; got {path}. Save arrays with np.savez(path, x=..., y=...)."
    )


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} cannot be chosen for this source; got {name}={value!r}. Leave it out.")


def _existing(source: Any) -> Path:
    path = Path(source).expanduser()
    if path.exists():
        return path
    near = get_close_matches(str(source), NAMED, n=1, cutoff=0.5)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise InputError(
        f"data must be one of {', '.join(sorted(NAMED))}, a folder of images or an .npz file; got '{source}', and "
        f"there is no file or folder of that name here.{hint}"
    )
