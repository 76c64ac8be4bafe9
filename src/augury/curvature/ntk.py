"""The tangent kernel of a group of data: one Gram matrix for each prior precision.

In function space the Gauss-Newton determinant is that of a kernel between pairs i = (datum n, column c). With R_c the
columns of a root of Lambda and theta_l the parameters that share the prior precision delta_l,

    log|J^T Lambda J + P| - log|P|  =  log|I + sum_l Q_l / delta_l|,     Q_l = J_l J_l^T,
    row i of J_l = d <R_c, f_n> / d theta_l,     R_c held fixed.

The Q_l do not depend on delta or on the observation noise, so both are learned from the same Q_l in closed form.
`ReducedKernel` takes Q_l from the inputs and output gradients of covered layers, `ExactKernel` from the exact
Jacobian of any network that torch.func can differentiate.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call, vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from augury.core.errors import InputError, choose
from augury.curvature.layers import is_kronecker, jacobian, shared_gradients, shared_inputs
from augury.curvature.structure import PRIORS
from augury.curvature.tape import Gradients, Tape, covered_layers, cut_off, record

Root = Callable[[Tensor, Tensor], Tensor]  # outputs f and a combination r of columns [B, C] -> R r [B, C]

Subset = Int[Tensor, " _"]  # indices of the columns of the root that a group uses

Group = tuple[Float[Tensor, "M C"], list[Float[Tensor, "L _ _"]]]
"""Averaged outputs of a group of data and, for each subset of columns, the Q_l."""


class Precisions:
    """Which prior precision each trainable parameter of a network has."""

    def __init__(self, net: nn.Module, prior: str = "scalar") -> None:
        self.prior = choose("prior", prior, PRIORS)
        self.parameters = {name: p for name, p in net.named_parameters() if p.requires_grad}
        if not self.parameters:
            raise InputError("the network has no trainable parameters. Unfreeze some with requires_grad_(True).")
        owners = {name: self._owner(name) for name in self.parameters}
        self.names = list(dict.fromkeys(owners.values()))
        self.index = {name: self.names.index(owner) for name, owner in owners.items()}

    def _owner(self, parameter: str) -> str:
        if self.prior == "scalar":
            return "all"
        return parameter.rpartition(".")[0] if self.prior == "layer" else parameter

    def sum_by_precision(self, grams: Mapping[str, Float[Tensor, "n n"]]) -> Float[Tensor, "L n n"]:
        """Return Q_l for every prior precision from the Gram matrices of single parameters."""
        per_precision: list[list[Tensor]] = [[] for _ in self.names]
        for name, gram in grams.items():
            per_precision[self.index[name]].append(gram)
        return torch.stack([torch.stack(same).sum(0) for same in per_precision])

    def penalty(self, delta: Float[Tensor, " L"]) -> Float[Tensor, ""]:
        if len(delta) != len(self.names):
            raise InputError(
                f"prior='{self.prior}' has {len(self.names)} precisions ({', '.join(self.names)}); got {len(delta)}. "
                f"Give delta one entry for each."
            )
        squares = [p.detach().double().square().sum() for p in self.parameters.values()]
        where = torch.tensor(list(self.index.values()), device=delta.device)
        return torch.stack(squares) @ delta.double()[where] / 2


class Kernel(ABC):
    """Computes the Gram matrices of a network's Jacobian."""

    def __init__(self, net: nn.Module, precisions: Precisions) -> None:
        self.net, self.precisions = net, precisions

    @abstractmethod
    def group(self, views: Tensor, S: int, root: Root, subsets: Sequence[Subset], graph: bool) -> Group:
        """Return what a group of data gives: its views [M * S, ...], side by side for each datum."""


def unit_columns(subset: Subset, f: Float[Tensor, "M C"]) -> Float[Tensor, "m C"]:
    return F.one_hot(subset.to(f.device), f.shape[-1]).to(f)


def gram(rows: Float[Tensor, "n ..."], columns: int = 2**17) -> Float[Tensor, "n n"]:
    """Return rows rows^T in double precision, which keeps it positive semi-definite to rounding."""
    parts = [part.double() for part in rows.flatten(1).split(columns, dim=1)]
    return torch.stack([part @ part.mT for part in parts]).sum(0)


def log_det(kernel: Float[Tensor, "n n"]) -> Float[Tensor, ""]:
    eye = torch.eye(len(kernel), dtype=kernel.dtype, device=kernel.device)
    return 2 * torch.linalg.cholesky(eye + kernel).diagonal().log().sum()


def refuse_dropout(net: nn.Module) -> None:
    """Raise if the network drops activations at random: it would be a new function at each call."""
    for name, module in net.named_modules():
        chance = 0.0
        if isinstance(module, nn.modules.dropout._DropoutNd):
            chance = module.p
        elif isinstance(module, (nn.MultiheadAttention, nn.RNNBase)):
            chance = module.dropout
        if module.training and chance > 0:
            raise InputError(
                f"layer '{name}' ({type(module).__name__}) drops activations at random (p = {chance:g}), so that the "
                f"network is a new function at each call and has no evidence. Set its p to 0, or call net.eval() "
                f"before the evidence."
            )


class ReducedKernel(Kernel):
    """The kernel of covered layers, from inputs and output gradients: no Jacobian is ever formed.

    Paper A's Eq. 14 writes a layer's Jacobian as one Kronecker product, J_i = a_n (x) g_i, with inputs averaged and
    gradients summed over copies, positions and calls. Its Gram matrix is an elementwise product of two small ones:

        Q_weight[i, i'] = <a_n, a_n'> <g_i, g_i'>,     Q_bias[i, i'] = <g_i, g_i'>.

    Exact where nothing is shared (a single copy of an MLP) and where the gradients of all copies are equal (linear
    models).
    """

    def __init__(self, net: nn.Module, precisions: Precisions) -> None:
        super().__init__(net, precisions)
        self.layers = covered_layers(net)

    def group(self, views: Tensor, S: int, root: Root, subsets: Sequence[Subset], graph: bool) -> Group:
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

    def _grams(self, tape: Tape, gradients: list[Gradients]) -> Tensor:
        grams: dict[str, Tensor] = {}
        for name, layer in self.layers.items():
            if is_kronecker(layer):
                of_layer = _kronecker_grams(name, layer, tape, gradients)
            else:
                columns = [jacobian(layer, tape.pairs(name, column), tape.S) for column in gradients]
                of_layer = {p: gram(torch.cat([J[p] for J in columns])) for p in columns[0]}
            grams |= {f"{name}.{p}" if name else p: Q for p, Q in of_layer.items()}
        return self.precisions.sum_by_precision({k: Q for k, Q in grams.items() if k in self.precisions.index})


def _kronecker_grams(name: str, layer: nn.Module, tape: Tape, gradients: list[Gradients]) -> dict[str, Tensor]:
    inputs = [shared_inputs(layer, call.a, tape.S, "reduce", joint_bias=False) for call in tape.calls[name]]
    a = torch.stack(inputs).mean(0)[:, 0]
    g = torch.cat([
        torch.stack([shared_gradients(layer, g, tape.S, "reduce") for g in column[name]]).sum(0)[:, 0]
        for column in gradients
    ])
    of_inputs, of_gradients = (r.transpose(0, 1).double() @ r.permute(1, 2, 0).double() for r in (a, g))
    m = len(gradients)
    return {"weight": (of_inputs.repeat(1, m, m) * of_gradients).sum(0), "bias": of_gradients.sum(0)}


LARGEST_JACOBIAN = 2**30  # largest number of entries in the Jacobian of a group: 4 GB in float32


class ExactKernel(Kernel):
    """The kernel of any network, from the exact Jacobian of every datum.

    Memory: the Jacobian of one group, M * m rows of P numbers, and the graph of one chunk of data. The graph of a
    chunk is not kept: with V_l = (dE/dQ_l + its transpose) J_l, the gradient of any E in a chunk of views is one
    vector-Jacobian product of <V, J(views)>, for which the chunk is run once more.
    """

    def __init__(self, net: nn.Module, precisions: Precisions, chunk: int = 32) -> None:
        super().__init__(net, precisions)
        self.chunk = chunk

    def group(self, views: Tensor, S: int, root: Root, subsets: Sequence[Subset], graph: bool) -> Group:
        views = views.unflatten(0, (-1, S))
        rows = len(views) * max(len(subset) for subset in subsets)
        P = sum(p.numel() for p in self.precisions.parameters.values())
        if rows * P > LARGEST_JACOBIAN:
            raise InputError(
                f"the exact kernel of a group holds {rows:,} rows of {P:,} numbers, at most {LARGEST_JACOBIAN:,} in "
                f"all. Use smaller groups of data, fewer outputs_per_group, or kernel='reduced'."
            )
        results = [_Grams.apply(views if graph else views.detach(), _Rows(self, root, subset)) for subset in subsets]
        return results[0][0], [grams for _, grams in results]


class _Rows:
    """Jacobian rows of some columns, as a function of views."""

    def __init__(self, kernel: ExactKernel, root: Root, subset: Subset) -> None:
        self.kernel, self.root, self.subset = kernel, root, subset
        self.theta = {name: p.detach() for name, p in kernel.precisions.parameters.items()}

    def of_datum(self, views: Float[Tensor, "S ..."]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return f_hat of one datum and the gradient of each <R_c, f_hat> in each parameter."""
        net = self.kernel.net
        f, pull_back, *_ = vjp(lambda theta: functional_call(net, theta, (views,)).mean(0), self.theta)
        units = unit_columns(self.subset, f[None])
        return f, vmap(pull_back)(self.root(f.expand_as(units), units))[0]

    def of_chunk(self, views: Float[Tensor, "b S ..."]) -> tuple[Tensor, list[Tensor]]:
        """Return f_hat of some data and their rows [b, m * P_l], one tensor per parameter."""
        # Only this attention of torch's can be differentiated twice; under vmap, only plain norms.
        with sdpa_kernel(SDPBackend.MATH), PlainNorms():
            try:
                f, rows = vmap(self.of_datum)(views)
            except RuntimeError as error:
                raise InputError(
                    f"torch.func must be able to differentiate {type(self.kernel.net).__name__}; it cannot: {error}. "
                    f"Usual reasons: .item(), a branch on the data, or writing in place into a fresh tensor."
                ) from error
        return f, [rows[name].flatten(2) for name in self.theta]


class _Grams(torch.autograd.Function):
    """Views -> (f_hat, Q_l), with a backward pass that runs chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, views: Float[Tensor, "M S ..."], rows: _Rows
    ) -> tuple[Float[Tensor, "M C"], Float[Tensor, "L n n"]]:
        parts = [rows.of_chunk(chunk) for chunk in views.split(rows.kernel.chunk)]
        J = [torch.cat(same).flatten(0, 1) for same in zip(*(part[1] for part in parts), strict=True)]
        ctx.rows = rows
        ctx.save_for_backward(views, *J)
        grams = {name: gram(J_l) for name, J_l in zip(rows.theta, J, strict=True)}
        return torch.cat([part[0] for part in parts]), rows.kernel.precisions.sum_by_precision(grams)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_f: Tensor, grad_grams: Tensor) -> tuple[Tensor, None]:
        views, *J = ctx.saved_tensors
        rows, m = ctx.rows, len(ctx.rows.subset)
        where = rows.kernel.precisions.index
        both = (grad_grams + grad_grams.mT).to(views)
        V = [(both[where[name]] @ J_l).unflatten(0, (-1, m)) for name, J_l in zip(rows.theta, J, strict=True)]
        size, grads = rows.kernel.chunk, []
        for k, chunk in enumerate(views.split(size)):
            here = slice(k * size, (k + 1) * size)
            with torch.enable_grad():
                leaf = chunk.detach().requires_grad_()
                f, J_chunk = rows.of_chunk(leaf)
            pairs = zip([f, *J_chunk], [grad_f[here], *(v[here] for v in V)], strict=True)
            # Some rows are constants: those of the last bias, for one.
            moving = [pair for pair in pairs if pair[0].requires_grad]
            if not moving:
                raise cut_off()
            outputs, directions = zip(*moving, strict=True)
            grads += torch.autograd.grad(outputs, leaf, directions)
        return torch.cat(grads), None


def _normalised(x: Tensor, axes: Sequence[int], eps: float) -> Tensor:
    centred = x - x.mean(tuple(axes), keepdim=True)
    return centred * (centred.square().mean(tuple(axes), keepdim=True) + eps).rsqrt()


def _layer_norm(
    input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> Tensor:
    out = _normalised(input, range(-len(normalized_shape), 0), eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def _instance_norm(
    input: Tensor,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
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


def _prelu(input: Tensor, weight: Tensor) -> Tensor:
    per_channel = weight.view(-1, *[1] * (input.ndim - 2)) if input.ndim > 1 else weight
    return torch.where(input > 0, input, per_channel * input)


PLAIN: dict[Callable[..., Tensor], Callable[..., Tensor]] = {
    F.layer_norm: _layer_norm,
    torch.layer_norm: _layer_norm,
    F.instance_norm: _instance_norm,
    torch.prelu: _prelu,
}


class PlainNorms(TorchFunctionMode):
    """Within this context, layer and instance normalisation are written out as sums, products and roots; PReLU, too.

    For use under `torch.func.vmap`: its batching rules take the mean and the deviation that the forward pass saved for
    constants, so that second derivatives lack a part (measured: several per cent wrong, without a warning). Group and
    RMS normalisation are not affected. Gradients of torch's PReLU have wrong shapes there.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return PLAIN.get(func, func)(*args, **(kwargs or {}))
