"""What each type of layer contributes to the curvature: its shared inputs, its shared gradients, its exact Jacobian.

One layout serves all: `[batch, position, group, features]`. The copies axis S is always reduced (paper A, Eqs. 14-15:
inputs averaged, gradients of the averaged output summed). Positions (of a convolution, of a sequence) are reduced the
same way, or kept (*expand*).

    linear, convolution   J_n = sum_r a_r (x) g_r          -> Kronecker factors from (a, g)
    scalars, norm affine  J_n = sum_r (a_r or x_hat_r) g_r  -> few parameters, exact dense block from J
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.scalars import ScalarBias, ScalarScale

POSITIONS = ("reduce", "expand")

_CONVS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
LAYERS: tuple[type[nn.Module], ...] = (nn.Linear, *_CONVS, *_NORMS, ScalarBias, ScalarScale)


def trainable(module: nn.Module) -> dict[str, Tensor]:
    """Return the trainable parameters of the module itself, without its children."""
    return {name: p for name, p in module.named_parameters(recurse=False) if p.requires_grad}


def is_covered(module: nn.Module) -> bool:
    """Return whether the module's Jacobian is known here.

    A subclass with its own forward is not covered, nor is a layer whose weight is computed from other
    parameters (weight normalisation, pruning).
    """
    known = any(isinstance(module, kind) and type(module).forward is kind.forward for kind in LAYERS)
    return known and set(dict(module.named_parameters(recurse=False))) <= {"weight", "bias", "scale"}


def is_kronecker(module: nn.Module) -> bool:
    """Return whether the layer has Kronecker factors; otherwise its block is dense."""
    return isinstance(module, (nn.Linear, *_CONVS))


def shared_inputs(
    layer: Any, a: Float[Tensor, "R ..."], S: int, positions: str, joint_bias: bool
) -> Float[Tensor, "B P groups D"]:
    """Return the inputs of a linear or convolutional layer, averaged over copies (and over positions: reduce)."""
    mean = a.unflatten(0, (-1, S)).mean(1) if S > 1 else a
    if isinstance(layer, nn.Linear):
        rows = mean.reshape(len(mean), -1, 1, layer.in_features)
        out = rows.mean(1, keepdim=True) if positions == "reduce" else rows
    else:
        out = mean_patches(layer, mean)[:, None] if positions == "reduce" else patches(layer, mean)
    return F.pad(out, (0, 1), value=1.0) if joint_bias else out


def shared_gradients(layer: Any, g: Float[Tensor, "R ..."], S: int, positions: str) -> Float[Tensor, "B P groups O"]:
    """Return the gradients in the layer's outputs, summed over copies (and over positions: reduce)."""
    g = g.unflatten(0, (-1, S))
    if isinstance(layer, nn.Linear):
        g = g.reshape(len(g), S, -1, layer.out_features)
        g = g.sum((1, 2))[:, None] if positions == "reduce" else g.sum(1)
    elif positions == "reduce":
        g = g.flatten(3).sum((1, 3))[:, None]
    else:
        g = g.sum(1).flatten(2).mT
    return g.unflatten(2, (getattr(layer, "groups", 1), -1))


def jacobian(layer: nn.Module, calls: Iterable[tuple[Tensor, Tensor]], S: int) -> dict[str, Float[Tensor, "B d"]]:
    """Return the exact Jacobian of <column, f> in each trainable parameter, summed over the layer's calls (a, g)."""
    kind: Callable[[nn.Module, Tensor, Tensor, int], list[Tensor]]
    kind = _linear_jacobian if is_kronecker(layer) else _norm_jacobian
    if isinstance(layer, (ScalarBias, ScalarScale)):
        kind = _scalar_jacobian
    names = [name for name, _ in layer.named_parameters(recurse=False)]
    total: dict[str, Tensor] = {}
    for a, g in calls:
        for name, J in zip(names, kind(layer, a, g, S), strict=True):
            if name in trainable(layer):
                total[name] = total[name] + J if name in total else J
    return total


def _linear_jacobian(layer: Any, a: Tensor, g: Tensor, S: int) -> list[Tensor]:
    if isinstance(layer, nn.Linear):
        a_rows = a.reshape(len(a) // S, -1, 1, layer.in_features)
        g_rows = g.reshape(len(g) // S, -1, 1, layer.out_features)
    else:
        a_rows = patches(layer, a).unflatten(0, (-1, S)).flatten(1, 2)
        g_rows = g.flatten(2).mT.unflatten(0, (-1, S)).flatten(1, 2).unflatten(2, (layer.groups, -1))
    weight = torch.einsum("brgo,brgd->bgod", g_rows, a_rows)
    bias = [g_rows.sum(1).flatten(1)] if layer.bias is not None else []
    return [weight.flatten(1), *bias]


def _scalar_jacobian(layer: nn.Module, a: Tensor, g: Tensor, S: int) -> list[Tensor]:
    terms = g if isinstance(layer, ScalarBias) else a * g
    return [terms.reshape(len(terms) // S, -1).sum(1, keepdim=True)]


def _norm_jacobian(layer: Any, a: Tensor, g: Tensor, S: int) -> list[Tensor]:
    B = len(a) // S
    if isinstance(layer, nn.LayerNorm):
        x_hat, d = F.layer_norm(a, layer.normalized_shape, eps=layer.eps), layer.weight.numel()
        terms = [(x_hat * g).reshape(B, -1, d).sum(1), g.reshape(B, -1, d).sum(1)]
    else:
        if isinstance(layer, nn.GroupNorm):
            x_hat = F.group_norm(a, layer.num_groups, eps=layer.eps)
        else:
            x_hat = F.batch_norm(a, layer.running_mean, layer.running_var, eps=layer.eps)
        terms = [t.reshape(B, S, a.shape[1], -1).sum((1, 3)) for t in (x_hat * g, g)]
    return terms if layer.bias is not None else terms[:1]


def _padded(conv: Any, x: Tensor) -> Tensor:
    mode = "constant" if conv.padding_mode == "zeros" else conv.padding_mode
    return F.pad(x, conv._reversed_padding_repeated_twice, mode=mode)


def patches(conv: Any, x: Float[Tensor, "B C ..."]) -> Float[Tensor, "B P groups D"]:
    """Return every patch that the kernel is multiplied with, flattened in the order of the kernel's weights."""
    n = len(conv.kernel_size)
    x = _padded(conv, x)
    for axis, (k, s, d) in enumerate(zip(conv.kernel_size, conv.stride, conv.dilation, strict=True), start=2):
        x = x.unfold(axis, (k - 1) * d + 1, s)[..., ::d]
    C = x.shape[1]
    x = x.flatten(2, 1 + n).flatten(3)  # [B, C, P, k...]
    return x.unflatten(1, (conv.groups, C // conv.groups)).permute(0, 3, 1, 2, 4).flatten(3)


def mean_patches(conv: Any, x: Float[Tensor, "B C ..."]) -> Float[Tensor, "B groups D"]:
    # No im2col: entry (c, i) is the mean of channel c over the positions p s + i d, one small matrix product per axis
    # with a selection matrix that holds 1 / P where the kernel falls.
    x = _padded(conv, x)
    for k, s, d in zip(conv.kernel_size, conv.stride, conv.dilation, strict=True):
        size = x.shape[2]
        P = (size - (k - 1) * d - 1) // s + 1
        where = torch.arange(k, device=x.device)[:, None] * d + torch.arange(P, device=x.device) * s
        selection = x.new_zeros(k, size).scatter_(1, where, 1 / P)
        # The first spatial axis is always contracted; its kernel axis goes to the end, so the order is kept.
        x = torch.tensordot(x, selection, dims=([2], [1]))
    return x.unflatten(1, (conv.groups, -1)).flatten(2)
