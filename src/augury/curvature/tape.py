"""Run a network once and record what curvature needs: each layer's inputs a and its outputs z, in the graph.

The network sees B * S rows: S copies of each of B data, side by side. Its outputs are averaged over the copies, so
the copies share the weights exactly as the positions of a convolution do.

Gradients in the outputs z come from `torch.autograd.grad`: no weight gradient is ever formed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from augury.core.errors import InputError, choose
from augury.core.evaluation import in_evaluation
from augury.curvature.layers import LAYERS, is_covered, trainable

Gradients = dict[str, list[Tensor]]  # gradients of <column, f> in the outputs of every call, by layer


@dataclass
class Call:
    """Input and output of one call of a layer."""

    a: Tensor
    z: Tensor
    version: int  # version counter of z when the layer returned it; a later in-place operation raises it


@dataclass
class Tape:
    """One forward pass of B data, S copies each."""

    B: int
    S: int
    layers: dict[str, nn.Module]
    calls: dict[str, list[Call]] = field(default_factory=dict)
    f: Tensor = field(default_factory=lambda: torch.empty(0))  # the outputs averaged over the copies [B, C]

    def gradients(self, column: Float[Tensor, "B C"], create_graph: bool, retain: bool) -> Gradients:
        """Return the gradient of <column, f> in every layer's outputs."""
        z = [call.z for calls in self.calls.values() for call in calls]
        options = {"create_graph": create_graph, "retain_graph": retain}
        # A layer whose output is not used has the gradient zero.
        grads = iter(torch.autograd.grad(self.f, z, column, materialize_grads=True, **options))
        return {name: [next(grads) for _ in calls] for name, calls in self.calls.items()}

    def pairs(self, name: str, grads: Gradients) -> list[tuple[Tensor, Tensor]]:
        """Return the input of every call of one layer, with the gradient in its output."""
        return [(call.a, g) for call, g in zip(self.calls[name], grads[name], strict=True)]


def covered_layers(net: nn.Module, only: Sequence[str] | None = None) -> dict[str, nn.Module]:
    """Return the layers that own the trainable parameters, or raise an error that names the one not covered."""
    found = {name: module for name, module in net.named_modules() if trainable(module)}
    layers = {choose("layer", name, found): found[name] for name in only} if only is not None else found
    for name, module in layers.items():
        if not is_covered(module):
            own, kind = ", ".join(trainable(module)), type(module).__name__
            what = f"layer '{name}' ({kind}: {own})" if name else f"the network's own parameters ({kind}: {own})"
            raise InputError(
                f"no Kronecker factors for {what}; covered are "
                f"{', '.join(sorted(kind.__name__ for kind in LAYERS))}. Alternatives: the bound for any network "
                f"(evidence='ntk'), the last layer only (method='last_layer'), or freeze them "
                f"(requires_grad_(False))."
            )
    if not layers:
        raise InputError("the network has no trainable parameters. Unfreeze some with requires_grad_(True).")
    _refuse_tied(layers)
    return layers


def _refuse_tied(layers: dict[str, nn.Module]) -> None:
    owner: dict[int, str] = {}
    for name, layer in layers.items():
        for parameter, tensor in trainable(layer).items():
            first = owner.setdefault(id(tensor), name)
            if first != name:
                raise InputError(
                    f"layers '{first}' and '{name}' share one tensor as their {parameter}, which would count twice. "
                    f"Call one layer twice instead, or use the bound for any network (evidence='ntk')."
                )


def cut_off() -> InputError:
    """Return the error for a network through which no gradient reaches the widths."""
    return InputError(
        "the outputs of the network must depend differentiably on its inputs, or no width can be learned; they do not. "
        "Look for torch.no_grad(), .detach() or rounding in its forward; freeze layers by requires_grad_(False)."
    )


def refuse_batch_coupling(net: nn.Module) -> None:
    """Raise if a BatchNorm uses statistics of its batch: in training mode, or because it keeps no running ones."""
    for name, module in net.named_modules():
        if not isinstance(module, nn.modules.batchnorm._BatchNorm):
            continue
        if module.training or module.running_mean is None:
            raise InputError(
                f"layer '{name}' ({type(module).__name__}) couples the samples of a batch, so that the evidence is not "
                f"a sum over data. Use its evaluation statistics (net.eval() before the evidence; it must have been "
                f"made with track_running_stats=True), or replace it: augury.swap_batchnorm(net)."
            )


def record(net: nn.Module, rows: Float[Tensor, "R ..."], S: int, layers: dict[str, nn.Module]) -> Tape:
    """Run the network on B * S rows and keep the inputs and outputs of `layers`."""
    refuse_batch_coupling(net)
    protect = any(getattr(module, "inplace", False) for module in net.modules())
    tape = _run(net, rows, S, layers, protect)
    if any(call.z._version != call.version for calls in tape.calls.values() for call in calls):
        # An in-place operation that no module announces (z.relu_(), z += y) overwrote a layer's output: keep copies.
        tape = _run(net, rows, S, layers, protect=True)
    not_called = [name for name in layers if name not in tape.calls]
    if not_called:
        raise InputError(
            f"layer '{not_called[0]}' has parameters but was not called as a module in the forward pass, so its inputs "
            f"cannot be seen. Call it as self.layer(x), freeze it, or use evidence='ntk'."
        )
    detached = [name for name, calls in tape.calls.items() if not all(call.z.requires_grad for call in calls)]
    if detached:
        raise InputError(
            f"layer '{detached[0]}' ran without gradients (torch.no_grad()), but its parameters are to be learned. "
            f"Let gradients through, or freeze it (requires_grad_(False))."
        )
    return tape


def _run(net: nn.Module, rows: Tensor, S: int, layers: dict[str, nn.Module], protect: bool) -> Tape:
    tape = Tape(len(rows) // S, S, layers)

    def keep(name: str, a: Tensor, z: Tensor) -> Tensor | None:
        if a.shape[:1] != rows.shape[:1]:
            raise InputError(
                f"the first axis of what layer '{name}' is called with must hold the {len(rows)} rows that came into "
                f"the network; got the shape {list(a.shape)}. Keep the batch in front ([batch, positions, features]), "
                f"or use the bound for any network (evidence='ntk')."
            )
        tape.calls.setdefault(name, []).append(Call(a, z, z._version))
        return z.clone() if protect else None

    def hook(name: str) -> Callable[..., Tensor | None]:
        return lambda _, inputs, named, z: keep(name, (*inputs, *named.values())[0], z)

    # Of torch's kernels for attention only this one can be differentiated twice.
    kernels = _ConstantKernels() if rows.requires_grad else nullcontext()  # else there are no widths behind the rows
    with _hooked({layer: hook(name) for name, layer in layers.items()}), sdpa_kernel(SDPBackend.MATH), kernels:
        out = net(rows)
    if not isinstance(out, Tensor):
        raise InputError(f"the network must give one tensor; it gave {type(out).__name__}.")
    tape.f = out.unflatten(0, (tape.B, S)).mean(1)
    return tape


class _ConstantKernels(TorchFunctionMode):
    """Convolutions whose kernels are constants.

    A gradient in the widths needs second derivatives in the inputs. Torch's own second derivative of a convolution
    computes that of the kernel too, whether it is asked for or not: a third of the time for outlines.
    """

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        plain = func in _CONVOLUTIONS and not kwargs and args[0].ndim == args[1].ndim and args[0].requires_grad
        if not plain or any(isinstance(given, str) for given in args[3:]):  # padding "same"
            return func(*args, **(kwargs or {}))
        defaults: tuple[Any, ...] = (None, 1, 0, 1, 1)
        x, weight, bias, stride, padding, dilation, groups = args + defaults[len(args) - 2 :]
        n = weight.ndim - 2
        sizes = [[v] * n if isinstance(v, int) else list(v) for v in (stride, padding, dilation)]
        geometry = (*sizes, False, [0] * n, groups)
        return _Conv.apply(x, weight.detach(), None if bias is None else bias.detach(), geometry)


_CONVOLUTIONS = {torch.conv1d, torch.conv2d, torch.conv3d}


class _Conv(torch.autograd.Function):
    """A convolution, differentiable twice in its input alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, geometry: tuple[Any, ...]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry = geometry
        return torch.convolution(x, weight, bias, *geometry)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        back: Tensor = _ConvTransposed.apply(grad, x.detach(), weight, ctx.geometry)
        return back, None, None, None


class _ConvTransposed(torch.autograd.Function):
    """The gradient of a convolution in its input, linear in that of its output."""

    @staticmethod
    def forward(ctx: Any, grad: Tensor, x: Tensor, weight: Tensor, geometry: tuple[Any, ...]) -> Tensor:
        ctx.save_for_backward(weight)
        ctx.geometry = geometry
        (stride, padding, dilation, _, _, groups), k = geometry, weight.shape[2:]
        flat = weight.shape[1] < 4 and groups == 1 and weight.ndim == 4 and {*stride, *dilation} == {1}
        if flat and all(p < size for p, size in zip(padding, k, strict=True)):
            # For few channels a convolution with the mirrored kernel takes two fifths of the time.
            border = [size - 1 - p for p, size in zip(padding, k, strict=True)]
            return torch.conv2d(grad, weight.flip(2, 3).transpose(0, 1), padding=border)
        mask = [True, False, False]
        back: Tensor = torch.ops.aten.convolution_backward(grad, x, weight, None, *geometry, mask)[0]
        return back

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (weight,) = ctx.saved_tensors
        return torch.convolution(grad, weight, None, *ctx.geometry), None, None, None


@contextmanager
def _hooked(hooks: Mapping[nn.Module, Callable[..., Any]]) -> Iterator[None]:
    handles = [module.register_forward_hook(hook, with_kwargs=True) for module, hook in hooks.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def last_layer(net: nn.Module, rows: Float[Tensor, "R ..."]) -> str:
    """Return the name of the covered layer that is called last in a forward pass."""
    order: list[str] = []
    found = {name: module for name, module in net.named_modules() if trainable(module) and is_covered(module)}
    with torch.no_grad(), _hooked({m: lambda *_, name=n: order.append(name) for n, m in found.items()}):
        net(rows)
    if not order:
        raise InputError("the network calls no covered layer, so it has no last layer to be Bayesian about.")
    return order[-1]


# Rows per pass. Too few, and the time goes into calls; too many, and tensors leave the cache, and are so large that
# their memory is given back and taken anew at every step. Factors of 200 data (ResNet: 60), S = 8, one thread, best of
# four: paper A's CNN (8 thousand activations a row) took 84, 71 and 90 ms with 250, 1,000 and 2,000 rows, the CNN of
# outlines (41 thousand) 455, 430 and 577 ms with 102, 204 and 409, ResNet-8 (94 thousand) 130, 118 and 177 ms with 89,
# 178 and 356.
ACTIVATIONS = 10**7  # largest number of activations in one pass: 40 MB in float32
MAX_ROWS = 2000


def rows_per_pass(net: nn.Module, x: Float[Tensor, "R ..."]) -> int:
    return max(1, min(MAX_ROWS, ACTIVATIONS // max(1, activations(net, x))))


def activations(net: nn.Module, x: Float[Tensor, "R ..."]) -> int:
    """Return how many numbers the modules without children return for one row."""
    counts: list[int] = []

    def count(module: nn.Module, inputs: object, named: object, output: object) -> None:
        if isinstance(output, Tensor):
            counts.append(output.numel())

    leaves = {module: count for module in net.modules() if next(module.children(), None) is None}
    with in_evaluation(net), torch.no_grad(), _hooked(leaves):
        net(x[:1])
    return sum(counts)
