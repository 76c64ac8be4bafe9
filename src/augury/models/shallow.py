r"""Paper B's two shallow networks, f(x) = W_2 phi(W_1 x + b), and their orbit average.

| name | phi(a) | first layer |
|---|---|---|
| rff | alpha sqrt(2 / F) cos(a) | fixed: frequencies sigma z with z ~ N(0, I), phases b uniform on [0, 2 pi] |
| relu | alpha max(0, a) | learned, from Xavier's weights, with their prior |

With W_2 ~ N(0, I) the prior covariance of the outputs of rff approaches, for many units F, the RBF kernel

    alpha^2 exp(-sigma^2 |x - x'|^2 / 2).

W_1 is blurred by a Gaussian, so that rotating a filter by interpolation does not alias. The paper says "small 0.1
sigma". In pixels that does nothing: the neighbouring tap is 2e-22 of the middle one. In the coordinates of its
transformations, where an image runs from -1 to 1, it is 1.4 pixels of 28 and does limit the band; so `blur` is in
those coordinates. The blur is symmetric, <blur(W), x> = <W, blur(x)>: the kernel sees blurred images.

A learned W_1 without a prior memorises few data at whatever widths it was trained at, and no width gains anything. So
W_1 is pulled towards its first value W_0, a draw from the prior: for a linear model and the precision of that prior the
W_1 that this leads to is a draw from the posterior (anchoring; Pearce et al., 2020). `prior` is the precision in units
of Xavier's, 0 for none, as in the paper. On 1,000 rotated digits from 0 degrees (seed 0) the bound per image is -.895,
-.673 and -.831 with 0, .1 and 1, the rotation 0, 155 and 180 degrees, and the test accuracy 71.8, 80.7 and 77.2 %.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError, choose
from augury.core.rng import rows
from augury.models.layers import bare, uniform_
from augury.models.orbit import OrbitAverage
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from augury.transforms.affine_matrices import affine_matrices
from augury.transforms.base import Transform
from augury.transforms.color import blur as diffuse
from augury.transforms.weights import transform_flat_weights


class Shallow(nn.Module, ABC):
    """One hidden layer whose filters are accessible, so that transformations can act on them."""

    def __init__(self, input_shape: Sequence[int], n_outputs: int, units: int, alpha: float, blur: float) -> None:
        super().__init__()
        if units < 1:
            raise InputError(f"a shallow network needs at least one feature; got units = {units}.")
        if not (alpha > 0 and blur >= 0):
            raise InputError(
                f"alpha must be above 0 and blur not below; got alpha = {alpha} and blur = {blur}. "
                f"blur=0 leaves the filters as they are."
            )
        self.input_shape, self.units, self.alpha = tuple(input_shape), units, float(alpha)
        self.blur = float(blur) if len(self.input_shape) == 3 else 0.0
        self.output = bare(nn.Linear, units, n_outputs, bias=False)

    @property
    @abstractmethod
    def filters(self) -> Float[Tensor, "F D"]:
        """The first-layer weights that multiply a flattened input, after the blur."""

    @property
    @abstractmethod
    def bias(self) -> Float[Tensor, " F"]:
        """Biases or phases of the hidden units."""

    @abstractmethod
    def activate(self, a: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch F"]:
        """Return phi(a)."""

    def hidden_penalty(self) -> Float[Tensor, ""]:
        """Return the negative log prior of what is learned of the first layer, up to a constant."""
        return torch.zeros(())

    def features(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B F"]:
        return self.activate(F.linear(x.flatten(1), self.filters, self.bias))

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B C"]:
        return self.output(self.features(x))

    def blurred(self, images: Float[Tensor, "n D"]) -> Float[Tensor, "n D"]:
        """Return flattened images or filters after the network's blur."""
        if self.blur == 0:
            return images
        side = min(self.input_shape[1:])
        t = images.new_full((images.shape[0], 1), (self.blur * side / 2) ** 2)
        return diffuse(images.unflatten(1, self.input_shape), t)[:, 0].flatten(1)


def usual_sigma(input_shape: Sequence[int]) -> float:
    """Return the default standard deviation of frequencies for inputs of a shape."""
    return 0.3 if len(input_shape) == 3 else 3.0 / math.sqrt(math.prod(input_shape) / 2)


class Rff(Shallow):
    """Random Fourier features: approximates a Gaussian process with an RBF kernel."""

    def __init__(
        self,
        input_shape: Sequence[int],
        n_outputs: int,
        rng: torch.Generator,
        units: int = 1024,
        sigma: float = 0.3,
        alpha: float = 5.0,
        blur: float = 0.1,
    ) -> None:
        super().__init__(input_shape, n_outputs, units, alpha, blur)
        if not sigma > 0:
            raise InputError(f"sigma must be above 0: all features would be constant; got {sigma}.")
        self.sigma = float(sigma)
        D = math.prod(self.input_shape)
        z = torch.randn(units, D, generator=rng, device=rng.device)
        self.register_buffer("frequencies", self.sigma * self.blurred(z))
        self.register_buffer("phases", torch.rand(units, generator=rng, device=rng.device) * (2 * math.pi))
        uniform_(self.output.weight, math.sqrt(6 / sum(self.output.weight.shape)), rng)  # Xavier

    @property
    def filters(self) -> Float[Tensor, "F D"]:
        return self.get_buffer("frequencies")

    @property
    def bias(self) -> Float[Tensor, " F"]:
        return self.get_buffer("phases")

    def activate(self, a: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch F"]:
        return a.cos() * (self.alpha * math.sqrt(2 / self.units))


class Relu(Shallow):
    """One hidden layer of ReLU units; both layers are learned."""

    def __init__(
        self,
        input_shape: Sequence[int],
        n_outputs: int,
        rng: torch.Generator,
        units: int = 1024,
        alpha: float = 1.0,
        blur: float = 0.1,
        prior: float = 0.1,
    ) -> None:
        super().__init__(input_shape, n_outputs, units, alpha, blur)
        if not prior >= 0:
            raise InputError(f"prior must not be below 0, which is none; got {prior}.")
        self.hidden = bare(nn.Linear, math.prod(self.input_shape), units)
        uniform_(self.hidden.weight, math.sqrt(6 / sum(self.hidden.weight.shape)), rng)  # Xavier
        self.precision = prior * sum(self.hidden.weight.shape) / 2
        self.register_buffer("anchor", self.hidden.weight.detach().clone(), persistent=False)
        nn.init.zeros_(self.hidden.bias)
        uniform_(self.output.weight, math.sqrt(6 / sum(self.output.weight.shape)), rng)  # Xavier

    def hidden_penalty(self) -> Float[Tensor, ""]:
        return self.precision / 2 * (self.hidden.weight - self.get_buffer("anchor")).square().sum()

    @property
    def bias(self) -> Float[Tensor, " F"]:
        return self.hidden.bias

    @property
    def filters(self) -> Float[Tensor, "F D"]:
        return self.blurred(self.hidden.weight)

    def activate(self, a: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch F"]:
        return a.relu() * self.alpha

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B C"]:
        # The inputs are blurred instead of the filters, so that curvature sees ordinary layers.
        return self.output(self.activate(self.hidden(self.blurred(x.flatten(1)))))


SIDES = ("auto", "input", "weight")  # what a transformation acts on; "auto" takes the cheaper side for each batch


class ShallowOrbit(OrbitAverage):
    r"""A shallow network averaged over transformations of its inputs or of its filters (paper B, sections 3.2 and 3.4).

    The last layer is linear, so averaging outputs is averaging features:

        f_hat(x) = W_2 phi_hat(x),   phi_hat(x) = 1/S sum_s phi(W_1 g_s x + b) = 1/S sum_s phi((W_1 o g_s) x + b).

    | side | what is warped | warps per step |
    |---|---|---|
    | input | every image by its own S maps | S B |
    | weight | every filter by S maps that all inputs share | S F |

    The products that follow are the same in number, so the side with fewer warps is cheaper: inputs, unless the batch
    is larger than the hidden layer. The two sides agree exactly where nothing is interpolated (plain coordinates,
    quarter turns, whole pixels), and as closely as interpolation allows elsewhere.
    """

    net: Shallow

    def __init__(
        self, net: Shallow, transform: Transform, samples: int = 16, samples_eval: int = 32, side: str = "auto"
    ) -> None:
        super().__init__(net, transform, samples, samples_eval)
        self.side = choose("side", side, SIDES)
        self.movable = isinstance(transform, Affine2d | AffineCoordinates)
        if side == "weight" and not self.movable:
            moved_filters(net, transform, torch.zeros(1, transform.noise_dim))  # raises

    def cheaper_side(self, B: int) -> str:
        if self.side != "auto":
            return self.side
        return "weight" if self.movable and self.net.units < B else "input"

    def noise(self, B: int, S: int, rng: torch.Generator) -> Float[Tensor, "_ {S} K"]:
        """Draw the noise of a batch: per input, or one set for all inputs if the filters are transformed."""
        if self.cheaper_side(B) == "weight":
            return self.transform.noise(1, S, rng)
        return rows(lambda B: self.transform.noise(B, S, rng), B, rng)

    def mean_features(
        self, x: Float[Tensor, "B ..."], eps: Float[Tensor, "_ S K"], side: str | None = None
    ) -> Float[Tensor, "B F"]:
        net, S = self.net, eps.shape[1]
        if (side or self.cheaper_side(x.shape[0])) == "weight":
            if len(eps) != 1:
                raise InputError(
                    f"all inputs share the transformed filters, so the noise must be [1, S, K]; got {list(eps.shape)}."
                )
            filters, bias = moved_filters(net, self.transform, eps[0])
            a = F.linear(x.flatten(1), filters.flatten(0, 1), bias.flatten())
            return net.activate(a.unflatten(1, (S, -1))).mean(1)
        views = self.transform.act(x, eps.expand(x.shape[0], -1, -1))
        return net.features(views.flatten(0, 1)).unflatten(0, (-1, S)).mean(1)

    def average(
        self, x: Float[Tensor, "B ..."], rng: torch.Generator, samples: int | None = None
    ) -> Float[Tensor, "B D"]:
        self.transform.check(x)
        eps = self.noise(len(x), samples or self.samples, rng).to(x)
        return self.net.output(self.mean_features(x, eps))

    def _mean(self, x: Tensor, eps: Tensor) -> Tensor:
        # In evaluation all inputs share one set of noise, and the side must not depend on how many there are.
        side = "weight" if self.side == "weight" else "input"
        return self.net.output(self.mean_features(x, eps[:1], side))


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
