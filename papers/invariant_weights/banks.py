"""Filter banks as text in a line of results, and back as pictures. Free of torch until pictures are packed."""

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any
from zlib import compress, decompress

from papers.mosaic import Picture

if TYPE_CHECKING:
    from torch import Tensor

LEVELS = 127
"""A picture is kept as bytes up to this, relative to the largest value of its bank."""


def pack(bank: "Tensor") -> dict[str, Any]:
    """Return pictures as JSON types, a byte for each pixel."""
    import torch

    largest = bank.abs().amax((-4, -3, -2, -1), keepdim=True).clamp(min=1e-30)
    whole = (LEVELS * bank / largest).round().to(torch.int8)
    return {
        "shape": list(bank.shape),
        "bytes": b64encode(compress(whole.contiguous().numpy().tobytes(), 9)).decode(),
    }


def unpack(packed: dict[str, Any]) -> Any:
    """Return what was packed."""
    import numpy as np

    return np.frombuffer(decompress(b64decode(packed["bytes"])), np.int8).reshape(packed["shape"])


def pictures(row: Any) -> list[Picture]:
    """Return filters as pictures that can be drawn."""
    import numpy as np

    if row.shape[1] == 3:
        colour: list[Picture] = np.moveaxis(row, 1, 3).astype(int).tolist()
        return colour
    grey: list[Picture] = row.astype(int).sum(1).tolist()
    return grey
