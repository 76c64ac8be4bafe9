"""Read the data sets that are known by name."""

from dataclasses import replace
from pathlib import Path

from augury.core.errors import InputError, choose
from augury.data.arrays import read_arrays
from augury.data.assemble import Options
from augury.data.catalog import NAMED, locate
from augury.data.dataset import Dataset
from augury.data.mnist5k import mnist5k
from augury.data.npz import read_npz

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
