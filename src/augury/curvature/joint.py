"""log|H| - log|P| of all layers at once, in function space, from a sample of the data.

    log|J^T Lambda J + P| - log|P| = log|I + K|,    K[i, i'] = sum_l <J_l[i], J_l[i']> / delta_l,

i = (column of the root of Lambda, datum). Kronecker factors overrate how much wide orbits save: a block for each layer
counts what layers share once for each, and A (x) G spreads what few uncertain data hold over all pairs of directions
(docs/results/curvature.md). Here every copy keeps its own product of inputs and gradients, J[i] = sum_s a_s (x) g_s, so
that only the positions of a convolution are reduced:

    <J[i], J[i']> = sum_st <a_s, a'_t> <g_s, g'_t>.

For a CNN of 60,170 weights its changes with a width are those of the exact Jacobian within a tenth. log|I + K| of M
data grows like M^p, which extends it to all of the data.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from augury.curvature.layers import is_kronecker, jacobian, shared_gradients, shared_inputs, trainable
from augury.curvature.ntk import log_det
from augury.curvature.tape import Gradients, Tape

Rows = dict[str, tuple[Tensor, ...]]
"""By layer, the data first: inputs [B, S, groups, D] and gradients [B, S, m, groups, O] of every copy; of layers
without Kronecker factors the Jacobian [B, m, d] in each parameter."""


def rows_of(tape: Tape, gradients: Sequence[Gradients]) -> Rows:
    """Return what the kernel needs of the tape's data: the inputs of every copy, and its gradients of m columns."""
    rows: Rows = {}
    for name, layer in tape.layers.items():
        if is_kronecker(layer):
            a = [shared_inputs(layer, call.a, 1, "reduce", joint_bias=False)[:, 0] for call in tape.calls[name]]
            g = [sum_of([shared_gradients(layer, g, 1, "reduce")[:, 0] for g in column[name]]) for column in gradients]
            pair = (sum_of(a) / len(a), torch.stack(g, 1))
            rows[name] = tuple(part.unflatten(0, (-1, tape.S)) for part in pair)
        else:
            J = [jacobian(layer, tape.pairs(name, column), tape.S) for column in gradients]
            rows[name] = tuple(torch.stack([of_column[p] for of_column in J], 1) for p in J[0])
    return rows


def sum_of(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(parts)).sum(0)


def joint_kernel(
    layers: Mapping[str, Any], parts: Sequence[Rows], delta: Callable[[Tensor], float]
) -> Float[Tensor, "m B m B"]:
    """Return K of all parts of the data in float64, given the prior precision of each parameter."""
    total = torch.zeros(())
    for name, layer in layers.items():
        rows = [torch.cat(same) for same in zip(*(part[name] for part in parts), strict=True)]
        parameters = trainable(layer)
        if is_kronecker(layer):
            grams = kronecker_grams(rows[0], rows[1])
        else:
            grams = {p: torch.einsum("bmd,cnd->mbnc", J, J) for p, J in zip(parameters, rows, strict=True)}
        for p, tensor in parameters.items():
            total = total + grams[p].double() / delta(tensor)
    return total


def kronecker_grams(
    a: Float[Tensor, "B S groups D"], g: Float[Tensor, "B S m groups O"]
) -> dict[str, Float[Tensor, "m B m B"]]:
    """Return the Gram matrices of weight and bias; column by column, because they are S^2 times as large before."""
    B, S, m = g.shape[:3]
    a_rows, g_rows = a.flatten(0, 1).transpose(0, 1), g.flatten(0, 1).permute(1, 2, 0, 3)  # [groups, R, D], + [m, O]
    of_inputs = a_rows @ a_rows.mT
    summed = g.sum(1).flatten(2)  # [B, m, groups * O]: a bias sees every copy alike
    of_weight, of_bias = g.new_empty(m, B, m, B), torch.einsum("bmo,cno->mbnc", summed, summed)
    for i in range(m):
        for j in range(i + 1):
            Q = (of_inputs * (g_rows[i] @ g_rows[j].mT)).sum(0)
            folded = Q.view(B, S, B * S).sum(1).view(B, B, S).sum(2)
            of_weight[i, :, j], of_weight[j, :, i] = folded, folded.mT
    return {"weight": of_weight, "bias": of_bias}


def growth(K: Float[Tensor, "m B m B"]) -> float:
    """Return p, the power of the number of data with which log|I + K| grows, from its halves."""
    h = K.shape[1] // 2
    halves = sum(half_log_det(K[:, part][:, :, :, part]) for part in (slice(h), slice(h, 2 * h)))
    together = half_log_det(K[:, : 2 * h][:, :, :, : 2 * h])
    return math.log2(2 * together / halves) if min(together, halves) > 0 else 1.0  # a single datum, a dead network


def half_log_det(K: Float[Tensor, "m B m B"]) -> float:
    """Return log|I + K| / 2."""
    n = K.shape[0] * K.shape[1]
    return float(log_det(K.reshape(n, n))) / 2
