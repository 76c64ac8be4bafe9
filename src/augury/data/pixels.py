"""From arrays as people keep them to float32 tensors in the library's layout.

- Unsigned bytes are divided by 255 and 16-bit values by 65,535; other integers must lie in 0 to 255 and are divided
  by 255. Floats stay as they are, unless all of them are whole numbers up to 255: those are bytes that somebody cast.
- Images come as [N, H, W], [N, H, W, C] or [N, C, H, W] and leave as [N, C, H, W]. The channels are last if the last
  axis is 1, 3 or 4 long and the second is not.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.data.checks import SHAPES

CHANNELS = (1, 3, 4)
"""Lengths by which an axis of channels is recognised: grey, RGB, RGBA."""


def as_array(values: Any) -> np.ndarray:
    """Return a tensor, an array or nested lists as a numpy array of numbers or text."""
    if isinstance(values, Tensor):
        return (
            values
            .detach()
            .to("cpu", torch.float32 if values.dtype == torch.bfloat16 else values.dtype)
            .numpy()
        )
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(
            f"examples must all have one shape; got a list of different ones ({error})."
        ) from error
    if array.dtype.kind not in "biufUS":
        raise InputError(
            f"arrays must hold numbers (or text labels); got dtype {array.dtype}. Nothing is unpickled."
        )
    return array


def infer_kind(x: np.ndarray, kind: str | None = None) -> str:
    """Say what the inputs are, from their shape, unless the user said it."""
    if kind is not None:
        return choose("kind", kind, SHAPES)
    if x.ndim == 4:
        return "image"
    if x.ndim == 3:
        if x.shape[-1] == 3:
            return "points"
        return "image" if x.dtype == np.uint8 or x.shape[1] == x.shape[2] else "signal"
    if x.ndim == 2 and x.shape[-1] == 2:
        return "coordinates"
    return "features"


def to_inputs(x: np.ndarray, kind: str) -> Tensor:
    """Return inputs as a float32 tensor in the layout of their kind."""
    if x.dtype.kind not in "biuf":
        raise InputError(f"inputs must be numbers; got dtype {x.dtype}.")
    values = np.array(x, dtype=np.float32, order="C")
    if kind == "image":
        if divisor := _divisor(x):
            values /= divisor
        return torch.from_numpy(np.ascontiguousarray(channels_first(values)))
    return torch.from_numpy(values)


def _divisor(x: np.ndarray) -> float:
    """Return what to divide pixels by; 0 for nothing."""
    if x.dtype.kind == "b" or x.size == 0:
        return 0.0
    if x.dtype.kind == "f":
        if _bytes_cast_to_floats(x):
            raise InputError(
                f"float pixels must lie in [0, 1] or be standardised; got whole numbers up to {x.max():g}, "
                f"which look like bytes. Divide by 255, or pass them as uint8."
            )
        return 0.0
    if x.dtype == np.uint16:
        return 65535.0
    if x.dtype != np.uint8 and not 0 <= x.min() <= x.max() <= 255:
        raise InputError(
            f"integer pixels must lie in 0 to 255 (or be uint16); got {x.dtype} from {x.min()} to {x.max()}. "
            f"Scale them to floats in [0, 1]."
        )
    return 255.0


def _bytes_cast_to_floats(x: np.ndarray) -> bool:
    low, high = x.min(), x.max()  # NaN fails every comparison, and is reported where finiteness is checked
    return bool(low >= 0 and 16 <= high <= 255 and np.array_equal(x, np.round(x)))


def channels_first(x: np.ndarray) -> np.ndarray:
    """Return images as [N, C, H, W]."""
    if x.ndim == 3:
        return x[:, None]
    if x.ndim == 4 and x.shape[-1] in CHANNELS and x.shape[1] not in CHANNELS:
        return x.transpose(0, 3, 1, 2)
    return x
