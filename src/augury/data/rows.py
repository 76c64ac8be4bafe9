"""Inputs that stay on disk: rows of a memory-mapped array, made float32 as they are read.

Arrays that would need more than `AUGURY_IN_MEMORY` MiB as float32 (default: 256) are not held in memory. Values, and so
whatever is learned from them, are the same to the last bit.
"""

import mmap
import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augury.core.errors import InputError

LARGEST = 8 * 2**30  # bytes above which inputs are not brought into memory at all

CHUNK = 2**24  # values that are read at once where all are needed, one chunk after the other

Which = slice | Tensor | np.ndarray  # which rows


class Rows:
    """Inputs [N, ...] on disk: a slice or an index of rows reads them into a tensor."""

    dtype = torch.float32

    def __init__(
        self,
        array: np.ndarray,
        divisor: float = 0.0,
        index: np.ndarray | None = None,
        device: torch.device | None = None,
    ) -> None:
        self.array, self.divisor, self.index = array, divisor, index
        self.device = device or torch.device("cpu")  # where rows go when they are read
        self.finite = array.dtype.kind != "f"  # whether all values are known to be

    def __len__(self) -> int:
        return len(self.array if self.index is None else self.index)

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self), *self.array.shape[1:]))

    @property
    def ndim(self) -> int:
        return self.array.ndim

    def is_floating_point(self) -> bool:
        return True

    def __getitem__(self, rows: Which) -> Tensor:
        rows = rows.numpy() if isinstance(rows, Tensor) else rows
        with np.errstate(over="ignore", invalid="ignore"):  # beyond float32: infinite, and refused as such
            found = self.array[rows if self.index is None else self.index[rows]]
            values = found.astype(np.float32, order="C")
        forget(self.array)
        if self.divisor:
            values /= self.divisor
        return torch.from_numpy(values).to(self.device)

    def take(self, rows: Which) -> "Rows":
        """Return some of the rows, without reading them."""
        index = np.arange(len(self)) if self.index is None else self.index
        rows = rows.numpy() if isinstance(rows, Tensor) else rows
        some = Rows(self.array, self.divisor, index[rows], self.device)
        some.finite = self.finite
        return some

    def to(self, device: torch.device) -> "Rows":
        return Rows(self.array, self.divisor, self.index, device)

    def split(self, n: int) -> Iterator[Tensor]:
        return (self[start : start + n] for start in range(0, len(self), n))

    def min(self) -> Tensor:
        return self._end(0)

    def max(self) -> Tensor:
        return self._end(1)

    def _end(self, which: int) -> Tensor:
        if self.index is None:  # of the numbers on disk: a quarter of the work for bytes
            return torch.tensor(np.float32(limits(self.array)[which]) / np.float32(self.divisor or 1.0))
        ends = torch.stack([torch.stack(part.aminmax()) for part in chunks(self)])
        return ends[:, which].aminmax()[which]


def is_large(shape: tuple[int, ...]) -> bool:
    """Say whether inputs of a shape stay on disk."""
    given = os.environ.get("AUGURY_IN_MEMORY", "256")
    if not given.isdecimal():
        raise InputError(f"AUGURY_IN_MEMORY must be a whole number of MiB; got '{given}'.")
    return 4 * prod(shape) > int(given) * 2**20


def taken(x: Tensor | Rows, rows: Which) -> Tensor | Rows:
    """Return some rows; those on disk stay there."""
    return x.take(rows) if isinstance(x, Rows) else x[rows]


def in_memory(x: Tensor | Rows) -> Tensor:
    """Return all inputs as a tensor, for what needs them at once."""
    if isinstance(x, Tensor):
        return x
    if 4 * prod(x.shape) > LARGEST:
        raise InputError(
            f"all {len(x)} inputs are needed in memory here, {4 * prod(x.shape) / 2**30:.0f} GiB; at most "
            f"{LARGEST / 2**30:.0f} are taken. Take a subset, or give a smaller size (size=64, --size 64)."
        )
    return x[:]


def chunks(x: Tensor | Rows) -> Iterable[Tensor]:
    """Give all rows, a chunk at a time."""
    return x.split(max(1, CHUNK // max(1, prod(x.shape[1:]))))


def fingerprint(x: Tensor | Rows, y: Tensor) -> str:
    """Return a hash of all inputs and targets."""
    digest = sha256()
    for parts in (chunks(x), (y,)):
        for part in parts:
            digest.update(part.contiguous().numpy().tobytes())
    return f"sha256:{digest.hexdigest()}"


def blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """Give an array, mapped or not, a chunk at a time."""
    n = max(1, CHUNK // max(1, prod(array.shape[1:])))
    for start in range(0, len(array), n):
        yield array[start : start + n]
        forget(array)


def limits(array: np.ndarray) -> tuple[Any, Any]:
    """Return the least and the largest value; NaN if there is one."""
    ends = np.array([(part.min(), part.max()) for part in blocks(array)])
    return ends[:, 0].min(), ends[:, 1].max()


def mapping(array: np.ndarray) -> mmap.mmap | None:
    """Return the mapped file that an array is a view of."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def forget(array: np.ndarray) -> None:
    """Give back the pages of a mapped file that were read, which would count as memory of the process."""
    if (pages := mapping(array)) is not None and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
