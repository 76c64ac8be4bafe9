"""A linear head on features, solved to its optimum, and its evidence as a function of the features.

The evidence of the head chooses the invariance descriptor (paper C chooses it by the training loss, which rewards
sensitivity). Features are centred and scaled to unit average norm first, so that an extractor cannot win by their size.
The value is differentiable in the features: at the optimum, with the head's own dependence on them accounted for.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.evidence.head_basis import Basis, Normalised, basis, normalised
from augury.evidence.head_gaussian import GaussianFit, fit_gaussian
from augury.evidence.head_softmax import SoftmaxFit, fit_softmax


@dataclass(frozen=True, eq=False)
class Warm:
    """Where to begin on features like those of before: saves most of the solver's steps."""

    delta: float
    """Prior precision."""
    alpha: Float[Tensor, "N C"]
    """The head as a combination of inputs."""


@dataclass(frozen=True, eq=False)
class Head:
    """A linear head and the evidence for its features."""

    log_evidence: Float[Tensor, ""]
    """Differentiable in the features, where these want gradients. For regression, of standardised targets."""
    weight: Float[Tensor, "C d"]
    """For features as they came: the normalisation is folded in."""
    bias: Float[Tensor, " C"]
    """Likewise."""
    delta: float
    """Prior precision of the weights of normalised features."""
    sigma2: float | None
    """Noise variance of standardised targets (regression)."""
    norm: float
    """Frobenius norm of the weights of normalised features."""
    reach: float
    """Largest norm of a normalised feature vector."""
    scale: Float[Tensor, " C"]
    """What the outputs are divided by for `norm` and `sigma2`: 1, or the targets' standard deviations."""
    warm: Warm | None
    """Where to begin next time."""

    def linear(self) -> nn.Linear:
        """Return the head as a layer.

        Returns
        -------
        nn.Linear
            From features to logits or numbers, in float32.
        """
        layer = nn.Linear(self.weight.shape[1], len(self.weight), device=self.weight.device)
        with torch.no_grad():
            layer.weight.copy_(self.weight)
            layer.bias.copy_(self.bias)
        return layer


def fit_head(
    features: Float[Tensor, "N d"],
    y: Shaped[Tensor, "N ..."],
    n_outputs: int,
    *,
    warm: Warm | None = None,
    tolerance: float = 1e-2,
) -> Head:
    """Solve the head and return it with its evidence.

    Parameters
    ----------
    features
        As an extractor gives them.
    y
        Labels [N] (int64), or targets [N, D] (floats).
    n_outputs
        Classes, or D.
    warm
        Where to begin (classification).
    tolerance
        How far below its maximum the evidence may stay, in nats (classification; regression is exact).

    Returns
    -------
    Head
        With a differentiable evidence.
    """
    regression = y.is_floating_point()
    if not regression and len(torch.unique(y)) < 2:
        raise InputError(
            "a classification task needs examples of at least two classes; all of these are of one. "
            "Add examples of another class."
        )
    if len(y) < 2:
        raise InputError(f"a head needs at least two examples; got {len(y)}.")
    space = normalised(features)
    rotated = basis(space.Z)
    if regression:
        return _gaussian(space, rotated, y)
    delta, alpha = (1.0, None) if warm is None else (warm.delta, warm.alpha)
    fit = fit_softmax(rotated, y, n_outputs, delta=delta, alpha=alpha, tolerance=tolerance)
    return _softmax(space, rotated, fit)


def _softmax(space: Normalised, rotated: Basis, fit: SoftmaxFit) -> Head:
    W = rotated.lift(fit.Theta[:, :-1]).double()
    scale = torch.ones(len(W)).to(W)
    return _head(
        space, rotated, fit, W, fit.Theta[:, -1], scale, sigma2=None, warm=Warm(fit.delta, fit.alpha)
    )


def _gaussian(space: Normalised, rotated: Basis, y: Float[Tensor, "N C"]) -> Head:
    y = y.double()
    spread = y.std(0, correction=0)
    scale = torch.where(spread > 0, spread, 1.0)
    fit = fit_gaussian(rotated, y / scale)
    W = rotated.lift(fit.W).double()
    return _head(space, rotated, fit, W, y.mean(0) / scale, scale, sigma2=fit.sigma2, warm=None)


def _head(
    space: Normalised,
    rotated: Basis,
    fit: SoftmaxFit | GaussianFit,
    W: Tensor,
    b: Tensor,
    scale: Tensor,
    *,
    sigma2: float | None,
    warm: Warm | None,
) -> Head:
    """Fold the normalisation of inputs and targets into the weights, and tie the evidence to the features."""
    value = torch.tensor(fit.value, dtype=torch.float64, device=W.device)
    if space.Z.requires_grad:
        slope = rotated.lift(fit.gradient())
        value = value + (slope * (space.Z - space.Z.detach())).sum().double()
    centre, size = space.centre.detach().double(), float(space.scale.detach())
    weight = scale[:, None] * W / size
    bias = scale * b - weight @ centre
    return Head(
        log_evidence=value,
        weight=weight,
        bias=bias,
        delta=fit.delta,
        sigma2=sigma2,
        norm=float(W.norm()),
        reach=float(space.Z.detach().norm(dim=1).max()),
        scale=scale,
        warm=warm,
    )
