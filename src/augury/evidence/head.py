"""A linear head on features, solved to its optimum, and its evidence as a function of the features.

The evidence of the head chooses the invariance descriptor (paper C chooses it by the training loss, which rewards
sensitivity). Features are centred and scaled to unit average norm first, so that an extractor cannot win by their size.
The value is differentiable in the features: at the optimum, with the head's own dependence on them accounted for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.evidence.head_basis import Basis, Normalised, basis, normalised
from augury.evidence.head_gaussian import GaussianFit, fit_gaussian
from augury.evidence.head_softmax import SoftmaxFit, fit_softmax
from augury.evidence.head_variational import affordable, variational


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
    """Frobenius norm of weights and bias, for normalised features (and standardised targets)."""
    reach: float
    """Largest norm of a normalised feature vector with a 1 appended for the bias."""
    centre: Float[Tensor, " C"]
    """What is taken from the outputs to standardise them: 0, or the targets' means."""
    scale: Float[Tensor, " C"]
    """What they are then divided by: 1, or the targets' standard deviations."""
    warm: Warm | None
    """Where to begin next time."""
    slope: Callable[[], Float[Tensor, "N d"]]
    """Works out the derivative of the log evidence in the normalised features."""
    variational: Callable[[], float] | None = None
    """Works out the bound from below, which compares heads on few data better; none for regression, where the evidence
    is exact, and where it would take long."""

    def linear(self) -> nn.Linear:
        """Return the head as a layer."""
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
    """Solve the head and return it with its evidence."""
    regression = y.is_floating_point()
    if not regression and len(torch.unique(y)) < 2:
        raise InputError(
            "a classification task needs examples of at least two classes; all of these are of one. "
            "Add examples of another class."
        )
    if len(y) < 2:
        raise InputError(f"a head needs at least two examples; got {len(y)}.")
    space = normalised(features)
    rotated = basis(space.Z, torch.float64 if regression else space.Z.dtype)
    if regression:
        return _gaussian(space, rotated, y)
    delta, alpha = (1.0, None) if warm is None else (warm.delta, warm.alpha)
    fit = fit_softmax(rotated, y, n_outputs, delta=delta, alpha=alpha, tolerance=tolerance)
    return _softmax(space, rotated, fit)


def _softmax(space: Normalised, rotated: Basis, fit: SoftmaxFit) -> Head:
    one = torch.ones(len(fit.Theta), dtype=torch.float64, device=fit.Theta.device)
    warm = Warm(fit.delta, fit.alpha)
    head = _head(space, rotated, fit, fit.Theta[:, :-1], fit.Theta[:, -1], (0 * one, one), None, warm)
    return replace(head, variational=partial(variational, fit)) if affordable(fit) else head


def _gaussian(space: Normalised, rotated: Basis, y: Float[Tensor, "N C"]) -> Head:
    centre, scale = standard(y.double())
    fit = fit_gaussian(rotated, (y.double() - centre) / scale)
    return _head(space, rotated, fit, fit.W, 0 * centre, (centre, scale), fit.sigma2, None)


def standard(y: Float[Tensor, "N C"]) -> tuple[Float[Tensor, " C"], Float[Tensor, " C"]]:
    """Return what standardises targets."""
    spread = y.std(0, correction=0)
    return y.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread))


def _head(
    space: Normalised,
    rotated: Basis,
    fit: SoftmaxFit | GaussianFit,
    rows: Tensor,
    b: Tensor,
    targets: tuple[Tensor, Tensor],
    sigma2: float | None,
    warm: Warm | None,
) -> Head:
    """Fold the normalisation of inputs and targets into the weights, and tie the evidence to the features."""
    W, b = rotated.lift(rows).double(), b.double()

    def slope() -> Tensor:
        return rotated.lift(fit.gradient())

    value = torch.tensor(fit.value, dtype=torch.float64, device=W.device)
    if space.Z.requires_grad:
        value = value + along(space.Z, slope())
    weight = targets[1][:, None] * W / float(space.scale.detach())
    return Head(
        log_evidence=value,
        weight=weight,
        bias=targets[0] + targets[1] * b - weight @ space.centre.detach().double(),
        delta=fit.delta,
        sigma2=sigma2,
        norm=math.hypot(float(W.norm()), float(b.norm())),
        reach=math.hypot(float(space.Z.detach().norm(dim=1).max()), 1.0),
        centre=targets[0],
        scale=targets[1],
        warm=warm,
        slope=slope,
    )


def along(Z: Float[Tensor, "N d"], slope: Float[Tensor, "N d"]) -> Float[Tensor, ""]:
    """Return 0, with a known derivative: what carries a gradient that was worked out by hand into autograd."""
    return (slope * (Z - Z.detach())).sum().double()
