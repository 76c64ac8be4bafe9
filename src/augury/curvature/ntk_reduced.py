"""The tangent kernel of covered layers, from inputs and output gradients: no Jacobian is ever formed.

Paper A's Eq. 14 writes a layer's Jacobian as one Kronecker product, J_i = a_n (x) g_i, with inputs averaged and
gradients summed over copies, positions and calls. Its Gram matrix is an elementwise product of two small ones:

    Q_weight[i, i'] = <a_n, a_n'> <g_i, g_i'>,     Q_bias[i, i'] = <g_i, g_i'>.

Exact where nothing is shared (a single copy of an MLP) and where the gradients of all copies are equal (linear models).
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.curvature.layers import is_kronecker, jacobian, learned, shared_gradients, shared_inputs
from augury.curvature.ntk import Kernel, Precisions, Root, Subset, gram, unit_columns
from augury.curvature.tape import Tape, covered_layers, record

Gradients = list[dict[str, list[Tensor]]]
"""Gradients in the layers' outputs, for one column after the other."""


class Reduced(Kernel):
    """The kernel of the covered layers."""

    def __init__(self, net: nn.Module, precisions: Precisions) -> None:
        super().__init__(net, precisions)
        self.layers = covered_layers(net)

    def group(
        self, views: Float[Tensor, "R ..."], S: int, root: Root, subsets: Sequence[Subset], graph: bool
    ) -> tuple[Float[Tensor, "M C"], list[Float[Tensor, "L _ _"]]]:
        """Return the averaged outputs and the Gram matrices of a group."""
        tape = record(self.net, views, S, self.layers)
        f = tape.f if graph else tape.f.detach()
        last = int(subsets[-1][-1])
        stacks = []
        for subset in subsets:
            gradients = [
                tape.gradients(root(f, unit.expand_as(f)), graph, retain=graph or int(c) != last)
                for c, unit in zip(subset, unit_columns(subset, f), strict=True)
            ]
            with torch.set_grad_enabled(graph):
                stacks.append(self._grams(tape, gradients))
        return f, stacks

    def _grams(self, tape: Tape, gradients: Gradients) -> Tensor:
        grams: dict[str, Tensor] = {}
        for name, layer in self.layers.items():
            of_layer = _kronecker_grams if is_kronecker(layer) else _dense_grams
            for parameter, Q in of_layer(name, layer, tape, gradients).items():
                key = f"{name}.{parameter}" if name else parameter
                if key in self.precisions.index:
                    grams[key] = Q
        return self.precisions.gathered(grams)


def _per_group(rows: Float[Tensor, "n groups d"]) -> Float[Tensor, "groups n n"]:
    rows = rows.transpose(0, 1).double()
    return rows @ rows.mT


def _kronecker_grams(name: str, layer: nn.Module, tape: Tape, gradients: Gradients) -> dict[str, Tensor]:
    inputs = [shared_inputs(layer, call.a, tape.S, "reduce", joint_bias=False) for call in tape.calls[name]]
    a = torch.stack(inputs).mean(0)[:, 0]
    g = torch.cat([
        torch.stack([shared_gradients(layer, g, tape.S, "reduce") for g in column[name]]).sum(0)[:, 0]
        for column in gradients
    ])
    of_inputs, of_gradients = _per_group(a), _per_group(g)
    m = len(gradients)
    return {"weight": (of_inputs.repeat(1, m, m) * of_gradients).sum(0), "bias": of_gradients.sum(0)}


def _dense_grams(name: str, layer: nn.Module, tape: Tape, gradients: Gradients) -> dict[str, Tensor]:
    columns: list[dict[str, Tensor]] = []
    for column in gradients:
        pairs = zip(tape.calls[name], column[name], strict=True)
        per_call = [jacobian(layer, call.a, g, tape.S) for call, g in pairs]
        columns.append({p: torch.stack([J[p] for J in per_call]).sum(0) for p in learned(layer)})
    return {p: gram(torch.cat([J[p] for J in columns])) for p in learned(layer)}
