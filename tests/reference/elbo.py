"""Slow twins of the variational bound: torch.distributions, the exact evidence of Bayesian linear regression."""

import math

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence


def kl(mean: Tensor, scale: Tensor, delta: float) -> Tensor:
    """Return KL(q || p), output by output, for Sigma = L^T L."""
    prior = MultivariateNormal(torch.zeros_like(mean[0]), torch.eye(mean.shape[1]).to(mean) / delta)
    blocks = [MultivariateNormal(m, covariance_matrix=L.mT @ L) for m, L in zip(mean, scale, strict=True)]
    return sum(kl_divergence(q, prior) for q in blocks)


def log_evidence(phi: Tensor, y: Tensor, delta: float, sigma2: float) -> Tensor:
    """Return log N(y_c; 0, phi phi^T / delta + sigma^2 I), summed over the columns of y."""
    K = phi @ phi.mT / delta + sigma2 * torch.eye(len(phi)).to(phi)
    return MultivariateNormal(torch.zeros(len(phi)).to(phi), K).log_prob(y.mT).sum()


def exact_posterior(phi: Tensor, y: Tensor, delta: float, sigma2: float) -> tuple[Tensor, Tensor]:
    """Return mean [C, F] and covariance [F, F] of the weights."""
    P = delta * torch.eye(phi.shape[1]).to(phi) + phi.mT @ phi / sigma2
    return torch.linalg.solve(P, phi.mT @ y / sigma2).mT, P.inverse()


def two_class_expectation(m: Tensor, v: Tensor, y: int) -> float:
    """Return E log softmax(f)_y for two classes: the difference of the outputs is Gaussian, so one integral does."""
    mean, var = m[y] - m[1 - y], v.sum()
    t = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    weight = torch.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    return float(torch.trapezoid(weight * torch.nn.functional.logsigmoid(mean + var.sqrt() * t), t))
