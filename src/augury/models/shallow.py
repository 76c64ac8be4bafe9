r"""Paper B's two shallow networks: f(x) = W_2 phi(W_1 x + b), one hidden layer and no bias after it.

| name | phi(a) | first layer |
|---|---|---|
| rff | alpha sqrt(2 / F) cos(a) | fixed: frequencies sigma z with z ~ N(0, I), phases b uniform on [0, 2 pi] |
| relu | alpha max(0, a) | learned, from Xavier's weights |

With W_2 ~ N(0, I) the prior covariance of the outputs of rff approaches, for many units F, the RBF kernel

    alpha^2 exp(-sigma^2 |x - x'|^2 / 2).

W_1 is blurred by a Gaussian, so that turning a filter by interpolation does not alias. The paper says "small 0.1
sigma". In pixels that does nothing: the neighbouring tap is 2e-22 of the middle one. In the coordinates of its
transformations, where an image runs from -1 to 1, it is 1.4 pixels of 28 and does limit the band; so `blur` is in
those coordinates. The blur is symmetric, <blur(W), x> = <W, blur(x)>: the kernel sees blurred images.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.models.layers import bare
from augury.transforms.color import blur as diffuse


class Shallow(nn.Module, ABC):
    """One hidden layer, taken apart so that transformations can act on its filters."""

    def __init__(
        self, input_shape: Sequence[int], n_outputs: int, units: int, alpha: float, blur: float
    ) -> None:
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
        """The first-layer weights as they meet a flattened input: blurred, in units of the input."""

    @property
    @abstractmethod
    def bias(self) -> Float[Tensor, " F"]:
        """Biases or phases of the hidden units."""

    @abstractmethod
    def activate(self, a: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch F"]:
        """Return the features of pre-activations."""

    def features(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B F"]:
        """Return phi(W_1 x + b)."""
        return self.activate(F.linear(x.flatten(1), self.filters, self.bias))

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B C"]:
        """Return the outputs."""
        return self.output(self.features(x))

    def blurred(self, images: Float[Tensor, "n D"]) -> Float[Tensor, "n D"]:
        """Return flattened images, or filters, after the network's blur."""
        if self.blur == 0:
            return images
        side = min(self.input_shape[1:])
        t = images.new_full((images.shape[0], 1), (self.blur * side / 2) ** 2)
        return diffuse(images.unflatten(1, self.input_shape), t)[:, 0].flatten(1)


def usual_sigma(input_shape: Sequence[int]) -> float:
    """Return a standard deviation for frequencies that suits inputs of a shape."""
    return 0.3 if len(input_shape) == 3 else 3.0 / math.sqrt(math.prod(input_shape) / 2)


class Rff(Shallow):
    """Random Fourier features: a Gaussian process with an RBF kernel, as near as its units allow."""

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
        _xavier(self.output.weight, rng)

    @property
    def filters(self) -> Float[Tensor, "F D"]:
        """The frequencies, which stay as they were drawn."""
        return self.get_buffer("frequencies")

    @property
    def bias(self) -> Float[Tensor, " F"]:
        """The phases, which stay too."""
        return self.get_buffer("phases")

    def activate(self, a: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch F"]:
        """Return alpha sqrt(2 / F) cos(a)."""
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
    ) -> None:
        super().__init__(input_shape, n_outputs, units, alpha, blur)
        self.hidden = bare(nn.Linear, math.prod(self.input_shape), units)
        _xavier(self.hidden.weight, rng)
        nn.init.zeros_(self.hidden.bias)
        _xavier(self.output.weight, rng)

    @property
    def bias(self) -> Float[Tensor, " F"]:
        """The hidden biases."""
        return self.hidden.bias

    @property
    def filters(self) -> Float[Tensor, "F D"]:
        """The learned weights, blurred."""
        return self.blurred(self.hidden.weight)

    def activate(self, a: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch F"]:
        """Return alpha max(0, a)."""
        return a.relu() * self.alpha

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B C"]:
        """Return the outputs; the inputs are blurred instead of the filters, so that the layers stay as they are."""
        return self.output(self.activate(self.hidden(self.blurred(x.flatten(1)))))


def _xavier(weight: Tensor, rng: torch.Generator) -> None:
    """Fill a weight [out, in] with uniform draws of variance 2 / (in + out)."""
    bound = math.sqrt(6 / sum(weight.shape))
    draw = torch.rand(weight.shape, generator=rng, device=rng.device) * 2 - 1
    with torch.no_grad():
        weight.copy_(bound * draw)
