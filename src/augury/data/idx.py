"""The idx format of the MNIST family: two zero bytes, type, number of axes, big-endian lengths, then the values."""

import gzip
import zlib
from collections.abc import Mapping

import numpy as np

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
