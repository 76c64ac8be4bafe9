"""Layer and instance normalisation from differentiable steps, for use under `torch.func.vmap`.

The batching rules of torch take the mean and the deviation that the forward pass saved for constants, so that second
derivatives under vmap lack a part (measured: several per cent wrong, without a warning). Inside `PlainNorms` both
functions are written out, and every derivative is right. Group and RMS normalisation need no help.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


def _normalised(x: Tensor, axes: Sequence[int], eps: float) -> Tensor:
    centred = x - x.mean(tuple(axes), keepdim=True)
    return centred * (centred.square().mean(tuple(axes), keepdim=True) + eps).rsqrt()


def _layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    out = _normalised(input, range(-len(normalized_shape), 0), eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def _instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not use_input_stats:
        return F.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    out = _normalised(input, range(2, input.ndim), eps)
    per_channel = (-1, *[1] * (input.ndim - 2))
    out = out if weight is None else out * weight.view(per_channel)
    return out if bias is None else out + bias.view(per_channel)


PLAIN: dict[Callable[..., Tensor], Callable[..., Tensor]] = {
    F.layer_norm: _layer_norm,
    torch.layer_norm: _layer_norm,
    F.instance_norm: _instance_norm,
}


class PlainNorms(TorchFunctionMode):
    """Within this context, layer and instance normalisation are sums, products and roots."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return PLAIN.get(func, func)(*args, **(kwargs or {}))
