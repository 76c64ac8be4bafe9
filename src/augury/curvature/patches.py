"""The patches that a convolution multiplies with its kernel, in any number of dimensions.

The mean of the patches over all positions needs no im2col: entry (c, i) is the mean of channel c over the positions
p s + i d, one small matrix product per axis with a selection matrix that holds 1 / P where the kernel falls.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def _padded(conv: Any, x: Tensor) -> Tensor:
    mode = "constant" if conv.padding_mode == "zeros" else conv.padding_mode
    return F.pad(x, conv._reversed_padding_repeated_twice, mode=mode)


def patches(conv: Any, x: Float[Tensor, "B C ..."]) -> Float[Tensor, "B P groups D"]:
    """Return every patch, flattened in the order of the kernel's weights."""
    n = len(conv.kernel_size)
    x = _padded(conv, x)
    for axis, (k, s, d) in enumerate(zip(conv.kernel_size, conv.stride, conv.dilation, strict=True), start=2):
        x = x.unfold(axis, (k - 1) * d + 1, s)[..., ::d]
    C = x.shape[1]
    x = x.flatten(2, 1 + n).flatten(3)  # [B, C, P, k...]
    return x.unflatten(1, (conv.groups, C // conv.groups)).permute(0, 3, 1, 2, 4).flatten(3)


def _selection(k: int, s: int, d: int, size: int, like: Tensor) -> Tensor:
    out = (size - (k - 1) * d - 1) // s + 1
    where = torch.arange(k, device=like.device)[:, None] * d + torch.arange(out, device=like.device) * s
    return torch.zeros(k, size, dtype=like.dtype, device=like.device).scatter_(1, where, 1 / out)


def mean_patches(conv: Any, x: Float[Tensor, "B C ..."]) -> Float[Tensor, "B groups D"]:
    """Return the mean of the patches over all positions."""
    x = _padded(conv, x)
    for k, s, d in zip(conv.kernel_size, conv.stride, conv.dilation, strict=True):
        # The first spatial axis is always contracted; its kernel axis goes to the end, so the order is kept.
        x = torch.tensordot(x, _selection(k, s, d, x.shape[2], x), dims=([2], [1]))
    return x.unflatten(1, (conv.groups, -1)).flatten(2)
