"""From arrays to float32 tensors in the library's layout: the only place that infers a layout.

| shape | read as |
|---|---|
| [N, H, W, C], [N, C, H, W] | images; channels are up to 4 long, else the axis that differs from two equal ones |
| [N, A, A], or [N, A, B] of bytes | grey images |
| [N, C, T] with T at least 4 C, or C at most 3 | signals |
| [N, 2] | coordinates in the plane |
| [N, D], and five or more axes | features |

A shape that fits two rows is refused unless `kind` is given ([N, T, C] of kind "signal" with T above 4 C has its
channels last). Pixels: bytes are divided by 255, 16 bits by 65,535, other integers in 0 to 255
by 255; floats are unchanged, except that whole numbers up to 255 are refused as probable bytes.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.data.dataset import SHAPES, SMALLEST_IMAGE
from augury.data.rows import Rows, blocks, is_large, limits, mapping


def as_array(values: Any) -> np.ndarray:
    """Return a tensor, an array, a column or nested lists as a numpy array of numbers or text."""
    if isinstance(values, Tensor):
        if values.layout != torch.strided:
            raise InputError("arrays must be dense; got a sparse tensor. Take x.to_dense().")
        values = values.detach().cpu()
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    if hasattr(values, "toarray"):
        raise InputError("arrays must be dense; got a sparse matrix. Take x.toarray().")
    if np.ma.is_masked(values):
        raise InputError(f"every value must be there; {values.mask.sum():,} are masked. Fill or remove them.")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"examples must all have one shape; got a list of different ones ({error}).") from error
    if array.dtype.kind == "O":
        array = _of_objects(array)
    if array.dtype.kind == "T":  # numpy's text of any length
        array = array.astype(np.str_)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # long doubles, which torch has not
        with np.errstate(over="ignore", invalid="ignore"):
            array = array.astype(np.float64)
    if array.dtype.kind not in "biufUS":
        raise InputError(f"arrays must hold real numbers (or text labels); got dtype {array.dtype}.")
    return array


def _of_objects(array: np.ndarray) -> np.ndarray:
    """Return an array of Python's text or numbers, as data frames keep them, with a type of numpy's own."""
    if array.size and all(isinstance(value, np.ndarray | Tensor | list) for value in array.flat):
        return as_array([as_array(value) for value in array.flat])
    flat = array.ravel().tolist()
    bad = next((i for i, value in enumerate(flat) if str(value) in ("None", "nan", "<NA>", "NaT")), None)
    if bad is not None:
        raise InputError(f"every value must be there; position {bad} is {flat[bad]}. Remove or repair it.")
    for types in (str, (bool, int, float, np.number)):
        if all(isinstance(value, types) for value in flat):
            return np.array(flat).reshape(array.shape)
    return array


def infer_kind(x: np.ndarray, kind: str | None = None) -> str:
    """Return what the inputs are, as stated or else from their shape; raise where that is ambiguous."""
    if kind is not None:
        return choose("kind", kind, SHAPES)
    if x.ndim == 1:
        raise InputError(f"inputs must be [N, ...]; got {list(x.shape)}. One number for each input is x[:, None].")
    if 0 in x.shape[1:]:
        raise InputError(f"inputs must hold numbers; got shape {list(x.shape)}.")
    if x.ndim == 4:
        if _channel_axis(x.shape) is None:
            raise InputError(
                f"images must be [N, C, H, W] or [N, H, W, C]; {list(x.shape)} can be either. If the channels are "
                f"first, say kind='image'; else move them: x.transpose(0, 3, 1, 2)."
            )
        return "image"
    if x.ndim == 3:
        return _of_three_axes(x)
    return "coordinates" if x.ndim == 2 and x.shape[-1] == 2 else "features"


def _of_three_axes(x: np.ndarray) -> str:
    A, B = x.shape[1:]
    image = min(A, B) >= SMALLEST_IMAGE
    if image and (A == B or x.dtype == np.uint8):
        return "image"
    if B != 3 and (B >= 4 * A or A in (1, 2, 3)):
        return "signal"
    can_be = [f"images of {A} x {B} pixels (kind='image')"] if image else []
    can_be += [f"clouds of {A} points (kind='points')"] if B == 3 else []
    C, T = (B, A) if A > 4 * B else (A, B)
    can_be += [f"signals of {T} steps in {C} channels (kind='signal')"]
    raise InputError(f"inputs of shape {list(x.shape)} can be {' or '.join(can_be)}. Say which: kind=... (--kind ...).")


def _channel_axis(shape: tuple[int, ...]) -> int | None:
    """Return which axis of four holds the channels: 1 or 3; None where both may."""
    first, last = shape[1], shape[3]
    # No image has a side below 4, so a shorter axis can be nothing but channels; 4 is taken for RGBA.
    if min(first, last) <= SMALLEST_IMAGE:
        return 3 if last < first else 1
    if (shape[1] == shape[2]) != (shape[2] == shape[3]):
        return 3 if shape[1] == shape[2] else 1
    return None


def moved(x: np.ndarray, kind: str) -> tuple[np.ndarray, str]:
    """Return inputs in the layout of their kind, and what was done."""
    if kind == "image" and x.ndim == 3:
        return x[:, None], ""
    if kind == "image" and x.ndim == 4 and _channel_axis(x.shape) == 3:
        return x.transpose(0, 3, 1, 2), "channels were last"
    if kind == "signal" and x.ndim == 3 and x.shape[1] > 4 * x.shape[2]:
        return x.transpose(0, 2, 1), "channels were last"
    if kind == "signal" and x.ndim == 2:
        return x[:, None], ""
    return x, ""


def to_inputs(x: np.ndarray, kind: str) -> Tensor | Rows:
    """Return inputs as float32 in the layout of their kind: a tensor, or rows on disk if they are there and large."""
    if x.dtype.kind not in "biuf":
        raise InputError(f"inputs must be numbers; got dtype {x.dtype}.")
    if mapping(x) is not None and is_large(x.shape):
        return Rows(moved(x, kind)[0], _divisor(x) if kind == "image" else 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float32: infinite, and refused as such
        values = np.array(x, dtype=np.float32, order="C")
    if kind == "image" and (divisor := _divisor(x)):
        values /= divisor
    return torch.from_numpy(np.ascontiguousarray(moved(values, kind)[0]))


def scaling(x: np.ndarray, kind: str) -> str:
    """Return what `to_inputs` does to the values of a data set; refuse 16-bit pixels that use 12 bits."""
    if kind != "image" or not x.size:
        return ""
    if x.dtype == np.uint16:
        check_bits(int(limits(x)[1]))
    divisor, (low, high) = _divisor(x), limits(x)
    return scaled_to(float(high) / divisor) if divisor else f"values {low:.3g}..{high:.3g}"


def scaled_to(largest: float) -> str:
    """Say that whole numbers became pixels; refuse a mask of 0 and 1, and say if all are dark."""
    if round(255 * largest, 3) == 1:
        raise InputError(
            "8-bit pixels must reach beyond 1 of 255, or all are black; these are 0 and 1, as in a mask. Pass x > 0, "
            "or save files with 0 and 255."
        )
    return "scaled to 0..1" + (f", the largest {largest:.2g}" if largest < 0.1 else "")


def check_bits(largest: int) -> None:
    """Raise if pixels of 16 bits use 12 of them or fewer."""
    if largest <= 4095:
        raise InputError(
            f"16-bit pixels must reach beyond 4,095; the largest is {largest:,} of 65,535, so these look like pixels "
            f"of 12 bits or fewer, and all would be near black. Pass floats: x / 4095."
        )


def _divisor(x: np.ndarray) -> float:
    """Return what to divide pixels by; 0 for nothing."""
    if x.dtype.kind == "b" or x.size == 0:
        return 0.0
    if x.dtype == np.uint8:
        return 255.0
    low, high = limits(x)
    if x.dtype.kind == "f":
        # NaN fails every comparison, and is reported where finiteness is checked.
        if low >= 0 and 16 <= high <= 255 and all(np.array_equal(part, np.round(part)) for part in blocks(x)):
            raise InputError(
                f"float pixels must lie in [0, 1] or be standardised; got whole numbers up to {high:g}, "
                f"which look like bytes. {'Pass them as uint8' if high > 16 else 'Divide by 16'}."
            )
        return 0.0
    if x.dtype == np.uint16:
        return 65535.0
    if not 0 <= low <= high <= 255:
        raise InputError(
            f"integer pixels must lie in 0 to 255 (or be uint16); got {x.dtype} from {low} to {high}. "
            f"Scale them to floats in [0, 1]."
        )
    return 255.0
