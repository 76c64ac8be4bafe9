r"""The orbit average of a shallow network, by transforming its inputs or its filters (paper B, 3.2 and 3.4).

The last layer is linear, so averaging outputs is averaging features:

    f_hat(x) = W_2 phi_hat(x),   phi_hat(x) = 1/S sum_s phi(W_1 g_s x + b) = 1/S sum_s phi((W_1 o g_s) x + b).

| side | what is warped | warps per step |
|---|---|---|
| input | every image by its own S maps | S B |
| weight | every filter by S maps that all inputs share | S F |

The products that follow are the same in number, so the side with fewer warps is cheaper: inputs, unless the batch is
larger than the hidden layer. The two sides agree exactly where nothing is interpolated (plain coordinates,
quarter turns, whole pixels), and as closely as interpolation allows elsewhere.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.models.orbit import OrbitAverage
from augury.models.shallow import Shallow
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from augury.transforms.affine_matrices import affine_matrices
from augury.transforms.base import Transform
from augury.transforms.weights import transform_flat_weights

SIDES = ("auto", "input", "weight")
"""What a transformation acts on; "auto" takes the cheaper side for each batch."""


def moved_filters(
    net: Shallow, transform: Transform, eps: Float[Tensor, "S K"]
) -> tuple[Float[Tensor, "S F D"], Float[Tensor, "S F"]]:
    """Return the first layer W_1 o g_s and its biases for each of S maps."""
    if isinstance(transform, Affine2d):
        C, H, W = net.input_shape
        filters = transform_flat_weights(net.filters, transform.matrices(eps[None])[0], (C, H, W))
        return filters, net.bias.expand(len(eps), -1)
    if isinstance(transform, AffineCoordinates):
        T = affine_matrices(transform.eta.to(eps), eps, transform.generators)
        return net.filters @ T[..., :2], T[..., 2] @ net.filters.mT + net.bias
    raise InputError(
        f"only affine transformations can act on the weights; got {type(transform).__name__}. "
        f"Let it act on the inputs: side='input' (--set side=input)."
    )


class ShallowOrbit(OrbitAverage):
    """A shallow network averaged over random transformations of its inputs or of its filters."""

    net: Shallow

    def __init__(
        self,
        net: Shallow,
        transform: Transform,
        samples: int = 16,
        samples_eval: int = 32,
        side: str = "auto",
    ) -> None:
        super().__init__(net, transform, samples, samples_eval)
        self.side = choose("side", side, SIDES)
        self.movable = isinstance(transform, Affine2d | AffineCoordinates)
        if side == "weight" and not self.movable:
            moved_filters(net, transform, torch.zeros(1, transform.noise_dim))  # raises

    def cheaper_side(self, B: int) -> str:
        """Return the side on which a batch of B is averaged."""
        if self.side != "auto":
            return self.side
        return "weight" if self.movable and self.net.units < B else "input"

    def noise(self, B: int, S: int, rng: torch.Generator) -> Float[Tensor, "_ {S} K"]:
        """Draw the noise of a batch: per input, or one set for all inputs if the filters are transformed."""
        return self.transform.noise(1 if self.cheaper_side(B) == "weight" else B, S, rng)

    def mean_features(
        self, x: Float[Tensor, "B ..."], eps: Float[Tensor, "_ S K"], side: str | None = None
    ) -> Float[Tensor, "B F"]:
        """Return phi_hat(x)."""
        net, S = self.net, eps.shape[1]
        if (side or self.cheaper_side(len(x))) == "weight":
            if len(eps) != 1:
                raise InputError(
                    f"all inputs share the transformed filters, so the noise must be [1, S, K]; got {list(eps.shape)}."
                )
            filters, bias = moved_filters(net, self.transform, eps[0])
            a = F.linear(x.flatten(1), filters.flatten(0, 1), bias.flatten())
            return net.activate(a.unflatten(1, (S, -1))).mean(1)
        views = self.transform.act(x, eps.expand(len(x), -1, -1))
        return net.features(views.flatten(0, 1)).unflatten(0, (len(x), S)).mean(1)

    def average(
        self, x: Float[Tensor, "B ..."], rng: torch.Generator, samples: int | None = None
    ) -> Float[Tensor, "B D"]:
        self.transform.check(x)
        eps = self.noise(len(x), samples or self.samples, rng).to(x)
        outputs: Tensor = self.net.output(self.mean_features(x, eps))
        return outputs

    def _mean(self, x: Tensor, eps: Tensor) -> Tensor:
        # In evaluation all inputs share one set of noise, and the side must not depend on how many there are.
        side = "weight" if self.side == "weight" else "input"
        outputs: Tensor = self.net.output(self.mean_features(x, eps[:1], side))
        return outputs
