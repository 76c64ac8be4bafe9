"""A feature extractor whose convolutions' weights are generated from an invariance descriptor (paper C).

    features = f(x; theta(i)),    i in [0, 1]^K: 1 for invariance to a group of transformations, 0 for sensitivity

Weights are generated once per batch and descriptor, never per input; those of many descriptors in one product.
All other parameters (scales and shifts of norms, biases, linear layers) are shared by all descriptors.

Batch normalisation takes its statistics at the current descriptor: of the batch, or, after `calibrate`, of reference
inputs, so that an input's features no longer depend on its neighbours. For a new task calibrate on its training inputs.
"""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from augury.core.errors import InputError, choose, first_line
from augury.core.evaluation import in_evaluation
from augury.models.hyper_norm import MomentNorm, forget, recording, swap_in
from augury.models.layers import seeded, swap_modules
from augury.models.networks import ENCODERS, build_encoder
from augury.records.saved import CUSTOM

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu}
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
D_H = 64  # hidden units of its generator (default)


class HyperExtractor(nn.Module):
    """An encoder whose convolutions follow an invariance descriptor.

    Parameters
    ----------
    encoder
        A key of `augury.models.networks.ENCODERS`, or your own module [n, *input_shape] -> [n, d] with convolutions,
        which is copied.
    groups
        Names of the K invariance groups, in the order of the descriptor.
    input_shape
        Shape of one input.
    rng
        Draws the generator's initial weights.
    d_h
        Hidden units of the generator (default: 40 for one convolution and 64 for a ResNet, as in paper C).
    activation
        Of the hidden units: "tanh" or "relu".
    """

    def __init__(
        self,
        encoder: str | nn.Module,
        groups: Sequence[str],
        input_shape: Sequence[int],
        rng: torch.Generator,
        d_h: int | None = None,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.groups: tuple[str, ...] = tuple(groups)
        if not self.groups or len(set(self.groups)) < len(self.groups) or not all(self.groups):
            raise InputError(
                f"an extractor needs at least one invariance group, each with a unique name; got {list(self.groups)}."
            )
        self.input_shape: tuple[int, ...] = tuple(input_shape)
        self.encoder_name: str = encoder if isinstance(encoder, str) else CUSTOM
        self.encoder = build_encoder(encoder, input_shape, rng) if isinstance(encoder, str) else copy.deepcopy(encoder)
        self.d_h: int = d_h or (ENCODERS[encoder].d_h if isinstance(encoder, str) else D_H)
        self.features: int = feature_count(self.encoder, self.input_shape)
        self.norms = swap_in(self.encoder)
        self.weights = WeightGenerator(len(self.groups), vacate(self.encoder), rng, self.d_h, activation)
        self.register_buffer("reference", None, persistent=False)
        self.reference: Tensor | None

    @property
    def K(self) -> int:
        """Number of invariance groups."""
        return len(self.groups)

    def forward(self, x: Float[Tensor, "n ..."], i: Float[Tensor, " K"]) -> Float[Tensor, "n d"]:
        """Return the features at one descriptor, differentiable in it; `descriptor` checks one from outside."""
        weights = {name: theta[0] for name, theta in self.generate(i[None]).items()}
        return self._encode(x, weights)

    def each(self, x: Float[Tensor, "M n ..."], i: Float[Tensor, "M K"]) -> Float[Tensor, "M n d"]:
        """Return the features at several descriptors, each with its own inputs."""
        weights = self.generate(i)
        # One pass after the other: a grouped convolution over all of them was twice as slow on a CPU.
        shares = [{name: theta[m] for name, theta in weights.items()} for m in range(len(i))]
        return torch.stack([self._encode(x_m, share) for x_m, share in zip(x, shares, strict=True)])

    def generate(self, i: Float[Tensor, "M K"]) -> dict[str, Float[Tensor, "M ..."]]:
        """Return the convolutions' weights at several descriptors."""
        if i.shape[-1] != self.K:
            raise InputError(f"a descriptor must have {self.K} entries ({', '.join(self.groups)}); got {i.shape[-1]}.")
        return self.weights(i)

    def _encode(self, x: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """Return the features with given weights in the convolutions: one descriptor's share of `generate`."""
        try:
            if x is not self.reference:
                self._record_moments(weights)
            return self._run(x, weights)
        finally:
            forget(self.norms)

    def _run(self, x: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        if x.ndim == 4:  # channels last: half the time of a convolution on a CPU
            x = x.contiguous(memory_format=torch.channels_last)
        return functional_call(self.encoder, dict(weights), (x,))

    def _record_moments(self, weights: Mapping[str, Tensor]) -> None:
        if self.norms and self.reference is not None:
            with recording(self.norms):
                self._run(self.reference, weights)

    def calibrate(self, x: Float[Tensor, "n ..."] | None) -> None:
        """Take the statistics of batch normalisation from reference inputs at every descriptor (None: from each batch).

        They pass through the network before every batch (not before their own: pass the same tensor to train on
        them). For many inputs at one descriptor use `materialise`, which costs one such pass in all.
        """
        self.reference = x

    @contextmanager
    def calibrated(self, x: Float[Tensor, "n ..."]) -> Iterator[None]:
        """Calibrate batch normalisation on these inputs for the block."""
        before, self.reference = self.reference, x
        try:
            yield
        finally:
            self.reference = before

    @torch.no_grad()
    def materialise(self, i: Float[Tensor, " K"]) -> nn.Module:
        """Return an ordinary network with the weights of one descriptor: a frozen copy of the encoder, in eval mode.

        If the extractor was calibrated, BatchNorms hold the reference's statistics; otherwise they use each batch's.
        """
        weights = {name: theta[0] for name, theta in self.generate(i[None]).items()}
        try:
            self._record_moments(weights)
            net = copy.deepcopy(self.encoder)
        finally:
            forget(self.norms)
        swap_modules(net, MomentNorm, MomentNorm.plain)
        for name, theta in weights.items():
            path, _, attribute = name.rpartition(".")
            layer = net.get_submodule(path)
            del layer._buffers[attribute]
            order = torch.channels_last if theta.ndim == 4 else torch.contiguous_format
            layer.register_parameter(attribute, nn.Parameter(theta.clone(memory_format=order)))
        return net.eval().requires_grad_(False)

    def descriptor(self, values: Any) -> Float[Tensor, " K"]:
        """Return K numbers in [0, 1], in the order of `groups` or by their names, as a tensor like the weights."""
        if isinstance(values, Mapping):
            for name in values:
                choose("invariance group", name, self.groups)
            missing = [name for name in self.groups if name not in values]
            if missing:
                raise InputError(f"a descriptor must have an entry for every group; '{missing[0]}' is missing.")
            values = [values[name] for name in self.groups]
        like = next(self.weights.parameters())
        try:
            i = torch.as_tensor(values, dtype=like.dtype, device=like.device).detach()
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"a descriptor must be made of numbers; got {values!r:.60}.") from error
        if i.shape != (self.K,):
            raise InputError(
                f"a descriptor must have {self.K} entries ({', '.join(self.groups)}); got {list(i.shape)}."
            )
        if not ((i >= 0) & (i <= 1)).all():
            raise InputError(
                f"every entry of a descriptor must lie in [0, 1]; got {[round(v, 4) for v in i.tolist()]}. "
                f"1 means invariance to the group, 0 sensitivity."
            )
        return i


class WeightGenerator(nn.Module):
    """From descriptors to the weights of all convolutions (paper C, appendix B).

        h = tanh(i w1 + b1),    theta_l = h w2_l + b2_l

    The first layer is shared, every convolution l has its own output layer. With a single convolution this is the
    paper's two-layer network (d_h = 40); for a ResNet-18 it takes d_h = 64. The paper leaves the activation open; tanh
    makes the weights a smooth function of the descriptor, which is learned by gradients. At the start every theta_l
    has the variance that suits a ReLU layer (He et al., 2015), half of it from b2_l (shared by all descriptors) and
    half from h w2_l.
    """

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
        return ACTIVATIONS[self.activation](self.first(i))

    def forward(self, i: Float[Tensor, "M K"]) -> dict[str, Float[Tensor, "M ..."]]:
        h = self.hidden(i)
        pairs = zip(self.shapes.items(), self.w2, self.b2, strict=True)
        return {name: (h @ w2 + b2).view(-1, *shape) for (name, shape), w2, b2 in pairs}


def _normal(shape: tuple[int, ...], spread: float, rng: torch.Generator) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape, generator=rng, device=rng.device) * spread)


def feature_count(encoder: nn.Module, input_shape: tuple[int, ...]) -> int:
    like = next(encoder.parameters(), torch.zeros(()))
    zeros = like.new_zeros(2, *input_shape)
    try:
        with in_evaluation(encoder), torch.no_grad():
            out = encoder(zeros)
    except RuntimeError as error:
        raise InputError(
            f"the encoder cannot take inputs of shape {list(input_shape)}: {first_line(error)}."
        ) from error
    if out.ndim != 2 or len(out) != 2:
        raise InputError(
            f"an encoder must return one row of features per input, [n, d]; for 2 inputs it returned {list(out.shape)}."
        )
    return int(out.shape[1])


def vacate(encoder: nn.Module) -> dict[str, tuple[int, ...]]:
    """Replace the weight of every convolution by an empty buffer, in place, and return their shapes."""
    shapes = {}
    for path, layer in encoder.named_modules():
        if isinstance(layer, CONVOLUTIONS):
            shapes[f"{path}.weight" if path else "weight"] = tuple(layer.weight.shape)
            del layer._parameters["weight"]
            layer.register_buffer("weight", torch.empty(0), persistent=False)
    if not shapes:
        raise InputError("an encoder must have convolutions, whose weights are to be generated; it has none.")
    return shapes
