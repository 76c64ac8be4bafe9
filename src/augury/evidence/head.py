"""A linear head on features, solved to its optimum, and its evidence as a function of the features.

The evidence of the head chooses the invariance descriptor (paper C chooses it by the training loss, which rewards
sensitivity). Features are centred and scaled to unit average norm first, so that their scale has no effect.
The value is differentiable in the features: at the optimum, with the head's own dependence on them accounted for.
Classification heads are in `head_softmax`; here are regression heads, and the training loss of paper C.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.evidence.head_softmax import (
    Basis,
    SoftmaxFit,
    affordable,
    basis,
    fit_softmax,
    normalised,
    problem,
    variational,
)


@dataclass(frozen=True, eq=False)
class Warm:
    """A warm start on similar features: saves most of the solver's steps."""

    delta: float  # prior precision
    alpha: Float[Tensor, "N C"]  # the head as a combination of inputs


@dataclass(frozen=True, eq=False)
class Head:
    """A linear head and the evidence for its features."""

    log_evidence: Float[Tensor, ""]
    """Differentiable in the features if they require gradients. For regression, of standardised targets."""
    weight: Float[Tensor, "C d"]  # for the original features: the normalisation is folded in
    bias: Float[Tensor, " C"]  # likewise
    delta: float  # prior precision of the weights of normalised features
    sigma2: float | None  # noise variance of standardised targets (regression)
    norm: float  # Frobenius norm of weights and bias, for normalised features (and standardised targets)
    reach: float  # largest norm of a normalised feature vector with a 1 appended for the bias
    centre: Float[Tensor, " C"]  # offset that standardises the outputs: 0, or the targets' means
    scale: Float[Tensor, " C"]
    """Divisor that standardises the outputs: 1, or the targets' standard deviations."""
    warm: Warm | None  # warm start for the next fit
    slope: Callable[[], Float[Tensor, "N d"]]
    """Computes the derivative of the log evidence in the normalised features."""
    variational: Callable[[], float] | None = None
    """Computes the variational lower bound, which compares heads on few data better; None for regression, where the
    evidence is exact, and where it would take long."""

    def linear(self) -> nn.Linear:
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
    fit: SoftmaxFit | GaussianFit
    sigma2, again, bound = None, None, None
    if regression:
        centre, scale = standard(y.double())
        fit = fit_gaussian(rotated, (y.double() - centre) / scale)
        rows, b, sigma2 = fit.W, 0 * centre, fit.sigma2
    else:
        delta, alpha = (1.0, None) if warm is None else (warm.delta, warm.alpha)
        fit = fit_softmax(rotated, y, n_outputs, delta=delta, alpha=alpha, tolerance=tolerance)
        rows, b, again = fit.Theta[:, :-1], fit.Theta[:, -1].double(), Warm(fit.delta, fit.alpha)
        centre, scale = torch.zeros_like(b), torch.ones_like(b)
        bound = partial(variational, fit) if affordable(fit) else None

    def slope() -> Tensor:
        return rotated.lift(fit.gradient())

    W = rotated.lift(rows).double()
    weight = scale[:, None] * W / float(space.scale.detach())
    value = torch.tensor(fit.value, dtype=torch.float64, device=W.device)
    return Head(
        log_evidence=value + along(space.Z, slope()) if space.Z.requires_grad else value,
        weight=weight,
        bias=centre + scale * b - weight @ space.centre.detach().double(),
        delta=fit.delta,
        sigma2=sigma2,
        norm=math.hypot(float(W.norm()), float(b.norm())),
        reach=math.hypot(float(space.Z.detach().norm(dim=1).max()), 1.0),
        centre=centre,
        scale=scale,
        warm=again,
        slope=slope,
        variational=bound,
    )


def standard(y: Float[Tensor, "N C"]) -> tuple[Float[Tensor, " C"], Float[Tensor, " C"]]:
    spread = y.std(0, correction=0)
    return y.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread))


def along(Z: Float[Tensor, "N d"], slope: Float[Tensor, "N d"]) -> Float[Tensor, ""]:
    """Return 0 with a known derivative: carries a gradient computed by hand into autograd."""
    return (slope * (Z - Z.detach())).sum().double()


# The evidence of a linear regression head, exact: prior precision and noise learned.
#
#     y_c ~ N(b_c, sigma^2 I + Z Z^T / delta)  for every output c, b_c integrated out under a flat prior.
#
# With lambda = delta sigma^2, and a_j, u_j the eigenvalues and eigenvectors of Z Z^T, the best sigma^2 is closed form,
#
#     sigma^2(lambda) = [ sum_j |u_j^T y|^2 / (1 + a_j / lambda) + |y outside|^2 ] / (C (N - 1)),
#     log p(D) = -C/2 [ sum_j log(1 + a_j / lambda) + (N - 1) (log 2 pi sigma^2 + 1) ],
#
# and lambda is left: one number, searched on a grid and then refined by bisection of the derivative.


@dataclass(frozen=True, eq=False)
class GaussianFit:
    """A linear regression head at its optimum, and its evidence."""

    features: Basis
    W: Float[Tensor, "C r"]  # posterior mean of the weights
    residual: Float[Tensor, "N C"]  # y - W z
    delta: float  # prior precision of the weights
    sigma2: float  # variance of the noise
    value: float  # log evidence

    def gradient(self) -> Float[Tensor, "N r"]:
        """Return the derivative of the log evidence in the rotated features."""
        # With S = sigma^2 I + K / delta: dL/dK = (S^-1 y y^T S^-1 - C S^-1) / (2 delta), S^-1 y = residual / sigma^2.
        shrink = len(self.W) / (self.delta * self.sigma2 + self.features.a)
        return self.residual @ self.W / self.sigma2 - self.features.Z * shrink


@torch.no_grad()
def fit_gaussian(features: Basis, y: Float[Tensor, "N C"]) -> GaussianFit:
    """Return the head, its prior precision and its noise with the highest evidence."""
    y = (y - y.mean(0)).to(features.Z)
    profile = Profile(features, y)
    lam = torch.tensor(math.exp(profile.best())).to(y)
    W = (y.T @ features.Z) / (features.a + lam)
    sigma2 = float(profile.sigma2(lam))
    residual = y - features.Z @ W.T
    return GaussianFit(features, W, residual, float(lam) / sigma2, sigma2, float(profile.value(lam)))


LOW, HIGH, POINTS, HALVINGS = math.log(1e-5), math.log(1e8), 79, 60
"""Range and points of the grid over log lambda; bisections of the best cell."""


class Profile:
    """The evidence as a function of lambda alone."""

    def __init__(self, features: Basis, y: Float[Tensor, "N C"]) -> None:
        self.a, (self.N, self.C) = features.a, y.shape
        self.along = (features.Z.T @ y).square().sum(1) / features.a
        self.outside = (y.square().sum() - self.along.sum()).clamp_min(0)

    def sigma2(self, lam: Float[Tensor, ""]) -> Float[Tensor, ""]:
        squares = (self.along / (1 + self.a / lam)).sum() + self.outside
        return (squares / (self.C * (self.N - 1))).clamp_min(1e-12)

    def value(self, lam: Float[Tensor, ""]) -> Float[Tensor, ""]:
        noise = (2 * math.pi * self.sigma2(lam)).log() + 1
        return -self.C / 2 * ((1 + self.a / lam).log().sum() + (self.N - 1) * noise)

    def slope(self, t: float) -> float:
        """Return the derivative of the log evidence in t = log lambda."""
        x = self.a / math.exp(t)
        less = (self.along * x / (1 + x).square()).sum() / self.sigma2(torch.tensor(math.exp(t)).to(x))
        return float(self.C * (x / (1 + x)).sum() - less) / 2

    def best(self) -> float:
        grid = torch.linspace(LOW, HIGH, POINTS, dtype=self.a.dtype, device=self.a.device)
        k = int(torch.stack([self.value(t.exp()) for t in grid]).argmax())
        low, high = float(grid[max(k - 1, 0)]), float(grid[min(k + 1, POINTS - 1)])
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.slope(middle) > 0 else (low, middle)
        return (low + high) / 2


@dataclass(frozen=True, eq=False)
class Loss:
    """The training loss of a linear head at its optimum, as a function of the features (paper C, Eq. 3).

        min_phi  sum_n L(phi, z_n, y_n) + ridge/2 |phi|^2

    A small ridge, because separable classes have no optimum without; the loss is cross-entropy, or half the squared
    error of standardised targets. At the optimum the derivative in the features is that of the loss alone (envelope
    theorem).
    """

    value: Float[Tensor, ""]
    """Minus the loss, summed over examples, the ridge's share included; differentiable in the features."""
    warm: Warm | None  # warm start for the next fit
    slope: Callable[[], Float[Tensor, "N d"]]  # computes the derivative in the normalised features


def fit_loss(
    features: Float[Tensor, "N d"],
    y: Shaped[Tensor, "N ..."],
    n_outputs: int,
    *,
    ridge: float,
    warm: Warm | None = None,
    tolerance: float = 1e-2,
) -> Loss:
    space = normalised(features)
    again = None
    if y.is_floating_point():
        rotated = basis(space.Z)
        centre, scale = standard(y.double())
        targets = (y.double() - centre) / scale
        W = (targets.T @ rotated.Z) / (rotated.a + ridge)
        E = targets - rotated.Z @ W.T
        value = -(E.square().sum() + ridge * W.square().sum()) / 2
    else:
        rotated = basis(space.Z, space.Z.dtype)
        head = problem(rotated, y, n_outputs, ridge)
        zero = head.Z.new_zeros(n_outputs, head.Z.shape[1])
        Theta = head.solve(zero if warm is None else warm.alpha.T @ head.Z, tolerance)
        E, W = head.Y - head.probabilities(Theta), Theta[:, :-1]
        value, again = head.value(Theta), Warm(ridge, E / ridge)

    def slope() -> Tensor:
        return rotated.lift(E @ W)

    if space.Z.requires_grad:
        value = value + along(space.Z, slope())
    return Loss(value, again, slope)
