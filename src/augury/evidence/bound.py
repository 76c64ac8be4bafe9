"""Losses and norms for the bound of Theorem 3.1 (paper C).

The theorem asks for a 1-Lipschitz loss, and its last term (McDiarmid) for one between 0 and 1. We take

    classification   ramp = clamp(1 - (f_y - max_{c != y} f_c) / sqrt(2), 0, 1)     at least 1 for a wrong answer,
    regression       clamp(|f - y|, 0, 1)                                            on standardised targets,

both 1-Lipschitz in the outputs (a difference of two logits has a gradient of norm sqrt 2). So the bound on the ramp
loss bounds the share of wrong answers too. As in the paper, X and B are those of the data and the head at hand, and
the middle term is that of a single output: for C outputs it would be sqrt(2 C) times as large (Maurer, 2016).

For a fine-tuned network of L layers the middle term is 2 X (sqrt(2 L ln 2) + 1) prod_l |W_l|_F / sqrt(n) (Golowich et
al., 2018, Theorem 1), W_l the l-th layer as a matrix: it grows exponentially with depth.
"""

import math

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.models.batchnorm import BATCH_NORMS

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def bounded_loss(outputs: Float[Tensor, "N C"], y: Shaped[Tensor, "N ..."]) -> Float[Tensor, " N"]:
    """Return the loss that the bound speaks of, for every example."""
    if y.is_floating_point():
        return (outputs - y).norm(dim=1).clamp(0, 1)
    own = outputs.gather(1, y[:, None])[:, 0]
    others = outputs.scatter(1, y[:, None], -math.inf).amax(1)
    return (1 - (own - others) / math.sqrt(2)).clamp(0, 1)


@torch.no_grad()
def product_of_norms(net: nn.Module, x: Float[Tensor, "N ..."]) -> float:
    """Return (sqrt(2 L ln 2) + 1) prod_l |W_l|_F: what stands for B where every layer was trained.

    A convolution as a matrix repeats its kernel at every position, so its squared norm is that of the kernel times the
    number of positions. The scale of a BatchNorm counts as part of the layer before it (its largest entry).
    """
    factors: list[float] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if isinstance(layer, BATCH_NORMS):
            var = layer.running_var if layer.running_var is not None else inputs[0].var((0, 2, 3))
            scale = (var + layer.eps).rsqrt()
            scale = scale if layer.weight is None else scale * layer.weight.abs()
            factors[-1] *= float(scale.max())
            return
        assert isinstance(layer.weight, Tensor)
        positions = output[0, 0].numel() if isinstance(layer, CONVOLUTIONS) else 1
        factors.append(float(layer.weight.norm()) * math.sqrt(positions))

    layers = [m for m in net.modules() if isinstance(m, (nn.Linear, *CONVOLUTIONS, *BATCH_NORMS))]
    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        net(x[:1])
    finally:
        for hook in hooks:
            hook.remove()
    return (math.sqrt(2 * len(factors) * math.log(2)) + 1) * math.prod(factors)
