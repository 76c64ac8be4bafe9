"""The generator of weights (paper C, appendix B): a first layer for all, an output layer for each convolution.

    h = tanh(i w1 + b1),    theta_l = h w2_l + b2_l

With a single convolution this is the paper's two-layer network (d_h = 40); for a ResNet-18 it takes d_h = 64. The paper
leaves the activation open; tanh makes the weights a smooth function of the descriptor, which is to be learned by
gradients. At the start every theta_l has the variance that suits a ReLU layer (He et al., 2015), half of it from b2_l
(shared by all descriptors) and half from h w2_l.
"""

import math
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import choose
from augury.models.layers import seeded

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu}


class WeightGenerator(nn.Module):
    """From descriptors to the weights of several layers, all descriptors at once."""

    def __init__(
        self,
        K: int,
        shapes: Mapping[str, tuple[int, ...]],
        rng: torch.Generator,
        d_h: int = 40,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.shapes = dict(shapes)
        self.activation = choose("activation", activation, ACTIVATIONS)
        self.first = seeded(nn.Linear, K, d_h, rng=rng)
        corners = (
            torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * K).view(-1, K)
            if K <= 10
            else torch.rand(1024, K, generator=rng).round()
        )
        with torch.no_grad():
            power = float(self.hidden(corners).square().sum(1).mean())
        self.w2, self.b2 = nn.ParameterList(), nn.ParameterList()
        for shape in self.shapes.values():
            n, spread = math.prod(shape), math.sqrt(2 / math.prod(shape[1:]))
            self.w2.append(_normal((d_h, n), spread * math.sqrt(0.5 / max(power, 1e-6)), rng))
            self.b2.append(_normal((n,), spread * math.sqrt(0.5), rng))

    def hidden(self, i: Float[Tensor, "M K"]) -> Float[Tensor, "M d_h"]:
        """Return h."""
        h: Tensor = ACTIVATIONS[self.activation](self.first(i))
        return h

    def forward(self, i: Float[Tensor, "M K"]) -> dict[str, Float[Tensor, "M ..."]]:
        """Return the weights of every layer for every descriptor."""
        h = self.hidden(i)
        pairs = zip(self.shapes.items(), self.w2, self.b2, strict=True)
        return {name: (h @ w2 + b2).view(-1, *shape) for (name, shape), w2, b2 in pairs}


def _normal(shape: tuple[int, ...], spread: float, rng: torch.Generator) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape, generator=rng, device=rng.device) * spread)
