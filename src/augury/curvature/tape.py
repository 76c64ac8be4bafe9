"""Run a network once and keep what curvature needs: each layer's inputs a and its outputs z, in the graph.

The network sees B * S rows: S copies of each of B data, side by side. Its outputs are averaged over the copies, so
the copies share the weights exactly as the positions of a convolution do. This room never asks what a copy is.

Gradients in the outputs z come from `torch.autograd.grad(f, tape.z)`: no weight gradient is ever formed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.curvature.layers import LAYERS, is_covered, trainable


@dataclass
class Call:
    """What one call of one layer saw and gave."""

    a: Tensor
    z: Tensor
    version: int


@dataclass
class Tape:
    """One forward pass of B data, S copies each."""

    B: int
    S: int
    layers: dict[str, nn.Module]
    calls: dict[str, list[Call]] = field(default_factory=dict)
    f: Tensor = field(default_factory=lambda: torch.empty(0))
    """The outputs averaged over the copies [B, C]."""

    @property
    def z(self) -> list[Tensor]:
        """Outputs of every call of every layer, in the order of `calls`."""
        return [call.z for calls in self.calls.values() for call in calls]

    def gradients(
        self, column: Float[Tensor, "B C"], create_graph: bool, retain: bool
    ) -> dict[str, list[Tensor]]:
        """Return the gradient of <column, f> in every layer's outputs.

        Parameters
        ----------
        column
            What to multiply the averaged outputs with: one column of a square root of Lambda.
        create_graph
            Whether the gradients shall be differentiable in turn.
        retain
            Whether the pass will be used for another column.

        Returns
        -------
        dict
            One gradient per call, by layer.
        """
        grads = iter(
            torch.autograd.grad(self.f, self.z, column, create_graph=create_graph, retain_graph=retain)
        )
        return {name: [next(grads) for _ in calls] for name, calls in self.calls.items()}


def covered_layers(net: nn.Module, only: Sequence[str] | None = None) -> dict[str, nn.Module]:
    """Return the layers whose trainable parameters make up the network, or raise naming the one that is not covered.

    Parameters
    ----------
    net
        The network.
    only
        Names of the layers to keep; the others count as constants.

    Returns
    -------
    dict
        Layers by name.
    """
    layers = {}
    for name, module in net.named_modules():
        if only is not None and name not in only:
            continue
        if not trainable(module):
            continue
        if not is_covered(module):
            raise InputError(
                f"no Kronecker factors for layer '{name or 'network'}' ({type(module).__name__}); covered are "
                f"{', '.join(sorted(kind.__name__ for kind in LAYERS))}. Ways out: the bound for any network "
                f"(evidence='ntk'), the last layer only (method='last_layer'), or freeze the layer "
                f"(requires_grad_(False))."
            )
        layers[name] = module
    if not layers:
        raise InputError("the network has no trainable parameters. Unfreeze some with requires_grad_(True).")
    return layers


def refuse_batch_coupling(net: nn.Module) -> None:
    """Raise if the network holds a BatchNorm in training mode: it makes one datum's output depend on the others.

    Parameters
    ----------
    net
        The network.
    """
    for name, module in net.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
            raise InputError(
                f"layer '{name}' ({type(module).__name__}) couples the samples of a batch, so that the evidence is not "
                f"a sum over data. Use its evaluation statistics (net.eval() before the evidence), or exchange it: "
                f"augury.swap_batchnorm(net)."
            )


def record(net: nn.Module, rows: Float[Tensor, "R ..."], S: int, layers: dict[str, nn.Module]) -> Tape:
    """Run the network on B * S rows and keep the inputs and outputs of `layers`.

    Parameters
    ----------
    net
        The network.
    rows
        S copies of each datum, side by side.
    S
        Copies per datum.
    layers
        What to keep, from `covered_layers`.

    Returns
    -------
    Tape
        The pass.
    """
    refuse_batch_coupling(net)
    tape = _run(net, rows, S, layers, protect=False)
    if any(call.z._version != call.version for calls in tape.calls.values() for call in calls):
        # An in-place operation (ReLU(inplace=True)) overwrote a layer's output: keep copies instead.
        tape = _run(net, rows, S, layers, protect=True)
    silent = [name for name in layers if name not in tape.calls]
    if silent:
        raise InputError(
            f"layer '{silent[0]}' has parameters but was not called as a module in the forward pass, so its inputs "
            f"cannot be seen. Call it as self.layer(x), freeze it, or use evidence='ntk'."
        )
    return tape


def _run(net: nn.Module, rows: Tensor, S: int, layers: dict[str, nn.Module], protect: bool) -> Tape:
    tape = Tape(len(rows) // S, S, layers)

    def keep(name: str, inputs: tuple[Tensor, ...], z: Tensor) -> Tensor | None:
        tape.calls.setdefault(name, []).append(Call(inputs[0], z, z._version))
        return z.clone() if protect else None

    handles = [
        layer.register_forward_hook(lambda _, inputs, z, name=name: keep(name, inputs, z))
        for name, layer in layers.items()
    ]
    try:
        out = net(rows)
    finally:
        for handle in handles:
            handle.remove()
    tape.f = out.unflatten(0, (tape.B, S)).mean(1)
    return tape


def last_layer(net: nn.Module, rows: Float[Tensor, "R ..."]) -> str:
    """Return the name of the covered layer that is called last in a forward pass.

    Parameters
    ----------
    net
        The network.
    rows
        A few inputs.

    Returns
    -------
    str
        The layer's name.
    """
    order: list[str] = []
    found: Iterable[tuple[str, nn.Module]] = (
        (name, module) for name, module in net.named_modules() if trainable(module) and is_covered(module)
    )
    handles = [m.register_forward_hook(lambda *_, name=name: order.append(name)) for name, m in found]
    try:
        with torch.no_grad():
            net(rows)
    finally:
        for handle in handles:
            handle.remove()
    if not order:
        raise InputError("the network calls no covered layer, so it has no last layer to be Bayesian about.")
    return order[-1]
