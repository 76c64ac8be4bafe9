"""The evidence of a linear regression head, exact: prior precision and noise learned.

    y_c ~ N(b_c, sigma^2 I + Z Z^T / delta)  for every output c, b_c integrated out with a flat prior (a mean removed).

With lambda = delta sigma^2, and a_j, u_j the eigenvalues and eigenvectors of Z Z^T, the best sigma^2 is a closed form,

    sigma^2(lambda) = [ sum_j |u_j^T y|^2 / (1 + a_j / lambda) + |y outside|^2 ] / (C (N - 1)),
    log p(D) = -C/2 [ sum_j log(1 + a_j / lambda) + (N - 1) (log 2 pi sigma^2 + 1) ],

and lambda is left: one number, searched on a grid and then refined by bisection of the derivative.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from augury.evidence.head_basis import Basis

LOW, HIGH, POINTS, HALVINGS = math.log(1e-5), math.log(1e8), 79, 60
"""Range and points of the grid over log lambda; halvings of the best cell."""


@dataclass(frozen=True, eq=False)
class GaussianFit:
    """A linear head at its optimum, and its evidence."""

    features: Basis
    """The inputs."""
    W: Float[Tensor, "C r"]
    """Posterior mean of the weights."""
    residual: Float[Tensor, "N C"]
    """y - W z."""
    delta: float
    """Prior precision of the weights."""
    sigma2: float
    """Variance of the noise."""
    value: float
    """Log evidence."""

    def gradient(self) -> Float[Tensor, "N r"]:
        """Return the derivative of the log evidence in the rotated features."""
        # With S = sigma^2 I + K / delta: dL/dK = (S^-1 y y^T S^-1 - C S^-1) / (2 delta), S^-1 y = residual / sigma^2.
        shrink = len(self.W) / (self.delta * self.sigma2 + self.features.a)
        return self.residual @ self.W / self.sigma2 - self.features.Z * shrink


class Profile:
    """The evidence as a function of lambda alone."""

    def __init__(self, features: Basis, y: Float[Tensor, "N C"]) -> None:
        self.a, (self.N, self.C) = features.a, y.shape
        self.along = (features.Z.T @ y).square().sum(1) / features.a
        self.outside = (y.square().sum() - self.along.sum()).clamp_min(0)

    def sigma2(self, lam: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Return the best noise variance."""
        squares = (self.along / (1 + self.a / lam)).sum() + self.outside
        return (squares / (self.C * (self.N - 1))).clamp_min(1e-12)

    def value(self, lam: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Return the log evidence."""
        noise = (2 * math.pi * self.sigma2(lam)).log() + 1
        return -self.C / 2 * ((1 + self.a / lam).log().sum() + (self.N - 1) * noise)

    def slope(self, t: float) -> float:
        """Return the derivative of the log evidence in t = log lambda."""
        x = self.a / math.exp(t)
        less = (self.along * x / (1 + x).square()).sum() / self.sigma2(torch.tensor(math.exp(t)).to(x))
        return float(self.C * (x / (1 + x)).sum() - less) / 2

    def best(self) -> float:
        """Return the best log lambda."""
        grid = torch.linspace(LOW, HIGH, POINTS, dtype=self.a.dtype, device=self.a.device)
        k = int(torch.stack([self.value(t.exp()) for t in grid]).argmax())
        low, high = float(grid[max(k - 1, 0)]), float(grid[min(k + 1, POINTS - 1)])
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.slope(middle) > 0 else (low, middle)
        return (low + high) / 2


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
