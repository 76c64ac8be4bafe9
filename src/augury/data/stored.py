"""Arrays on disk that are too large for memory: those of `.npz` and `.npy` files, and those that Augury writes.

    CACHE/streams/KEY.npz    images of a folder, decoded and resized, with their labels
    CACHE/streams/KEY.npy    a member of an `.npz` that was compressed

Each is written once, whole or not at all. The key is a hash of names, sizes and times of the files they were made from,
and of what was done to them. They can be deleted at any time.
"""

import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from augury.core.errors import RunError
from augury.core.files import written_whole
from augury.data.named import cache_dir
from augury.data.rows import is_large

try:
    import fcntl
except ImportError:  # Windows: every process makes its own file, and the last one stays
    fcntl = None  # type: ignore[assignment]

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def place_of(files: Iterable[Path | str], *how: object, ending: str = ".npz") -> Path:
    """Return where the array made of these files in this way is kept, if it is there."""
    digest = sha256(repr(how).encode())
    for path in files:
        facts = os.stat(path)
        digest.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return cache_dir() / "streams" / f"{digest.hexdigest()[:32]}{ending}"


def check_space(folder: Path, needed: int) -> None:
    """Create the folder; raise unless there is space for that many bytes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write to {folder}: {error.strerror}. Set AUGURY_CACHE to another folder.") from error
    if (free := shutil.disk_usage(folder).free) < needed:
        raise RunError(
            f"data larger than memory need {needed / 2**30:.1f} GiB in {folder}; {free / 2**30:.1f} are free. Make "
            f"space, set AUGURY_CACHE to another disk, or give a smaller size (size=64, --size 64)."
        )


@contextmanager
def missing(place: Path) -> Iterator[bool]:
    """Yield whether a file must be made; other processes of this machine that want it wait until the block ends."""
    lock = _made(place.parent) / f".{place.name}.lock"
    with lock.open("w") as held:
        if fcntl is not None:
            fcntl.flock(held, fcntl.LOCK_EX)  # a killed process holds no lock
        try:
            yield not place.exists()
        finally:
            lock.unlink(missing_ok=True)


def keep(
    path: Path, shape: tuple[int, ...], dtype: np.dtype, rows: Iterable[np.ndarray], facts: Mapping[str, Any]
) -> None:
    """Write an `.npz` of an array `x`, row by row, and of small facts, known when the rows are."""
    check_space(path.parent, prod(shape) * dtype.itemsize)
    header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with written_whole(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        with archive.open("x.npy", "w", force_zip64=True) as member:
            npy.write_array_header_1_0(member, header)
            for row in rows:
                member.write(np.ascontiguousarray(row, dtype).data)
        for name, value in facts.items():
            with archive.open(f"{name}.npy", "w") as member:
                npy.write_array(member, np.asarray(value), allow_pickle=False)


def spilled(rows: Iterable[np.ndarray], N: int) -> np.ndarray:
    """Write N rows to a file that the system deletes with the process, and map it."""
    folder, first = cache_dir() / "streams", None
    with tempfile.TemporaryFile(dir=_made(folder)) as file:
        for row in rows:
            if first is None:
                first = row
                check_space(folder, N * row.nbytes)
            file.write(np.ascontiguousarray(row, first.dtype).data)
        file.flush()
        assert first is not None
        return np.memmap(file, first.dtype, "r", shape=(N, *first.shape))


def _made(folder: Path) -> Path:
    check_space(folder, 0)
    return folder


def read_npy(path: Path) -> np.ndarray:
    """Return the array of an `.npy` file, mapped if it is large."""
    with path.open("rb") as file:
        found = _header(file)
    large = found is not None and is_large(found[0])
    return np.load(path, mmap_mode="r" if large else None, allow_pickle=False)


def read_member(path: Path, archive: zipfile.ZipFile, name: str) -> np.ndarray | None:
    """Return a large array of an `.npz`, mapped; None if it is small."""
    info = archive.NameToInfo.get(f"{name}.npy")
    if info is None:
        return None
    with archive.open(info) as member:
        found = _header(member)
        start = member.tell()
    if found is None or not is_large(found[0]):
        return None
    shape, fortran, dtype = found
    if dtype.hasobject or start + prod(shape) * dtype.itemsize != info.file_size:
        return None  # refused by numpy, in its words
    if info.compress_type != zipfile.ZIP_STORED:
        return np.load(_extracted(path, archive, info), mmap_mode="r", allow_pickle=False)
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        lengths = struct.unpack("<HH", file.read(4))  # of name and extra field, which the directory's may not equal
    offset = info.header_offset + 30 + sum(lengths) + start
    return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")


def _extracted(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Path:
    place = place_of([path.absolute()], info.filename, ending=".npy")
    with missing(place) as needed:
        if needed:
            check_space(place.parent, info.file_size)
            with written_whole(place) as temporary, archive.open(info) as member, temporary.open("wb") as file:
                shutil.copyfileobj(member, file, 2**20)
    return place


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype] | None:
    """Return shape, order and type of an array in numpy's format; None if it is of a version for structures."""
    read = HEADERS.get(npy.read_magic(file))
    return None if read is None else read(file)
