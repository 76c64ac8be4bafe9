"""How many rows to send through a network at once.

Too few, and the time goes into calling; too many, and the graph fills the memory (a width-gradient of paper A's CNN
took 4.5 times the memory of its activations). Time per image, one thread of a busy machine, best of three, S = 20:
within a tenth of the fastest from 500 rows for paper A's MLP (3 thousand activations a row), 400 for its CNN (12
thousand) and 200 for its ResNet-8 (94 thousand), nearly flat from there on. So the rule bounds the memory, no more.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

ACTIVATIONS = 2**24
"""Activations of one pass: 64 MB in float32."""
MOST_ROWS = 2000


def rows_per_pass(net: nn.Module, x: Float[Tensor, "R ..."]) -> int:
    """Return a good number of rows for one pass with a graph."""
    return max(1, min(MOST_ROWS, ACTIVATIONS // max(1, activations(net, x))))


def activations(net: nn.Module, x: Float[Tensor, "R ..."]) -> int:
    """Return how many numbers the modules without children give for one row."""
    counts: list[int] = []

    def count(module: nn.Module, inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            counts.append(output.numel())

    modes = {module: module.training for module in net.modules()}
    handles = [m.register_forward_hook(count) for m in modes if next(m.children(), None) is None]
    try:
        net.eval()
        with torch.no_grad():
            net(x[:1])
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes.items():
            module.training = training
    return sum(counts)
