"""The evidence where it has a closed form, and where it does not: Laplace with nothing but dense matrices."""

import math

import torch

from reference.curvature import averaged, empirical, ggn, jacobians, lambdas


def posterior_mode(Phi, y, delta, sigma2):
    """argmax of log p(y | Phi w) + log p(w): w of [features, outputs], one prior precision per feature."""
    precision = Phi.T @ Phi / sigma2 + torch.diag(delta)
    return torch.linalg.solve(precision, Phi.T @ y / sigma2)


def linear_gaussian_evidence(Phi, y, delta, sigma2):
    """log N(y; 0, sigma^2 I + Phi diag(delta)^-1 Phi^T), summed over independent outputs."""
    covariance = sigma2 * torch.eye(len(y), dtype=y.dtype) + Phi @ torch.diag(1 / delta) @ Phi.T
    normal = torch.distributions.MultivariateNormal(torch.zeros(len(y), dtype=y.dtype), covariance)
    return normal.log_prob(y.T).sum()


def laplace_evidence(net, views, y, delta, sigma2=None, output="ggn"):
    """Eq. 9 with the whole GGN as a dense matrix and one prior precision: regression where sigma2 is given."""
    f = averaged(net, views).detach()
    Lambda = lambdas(f, y) if output == "ggn" else empirical(f, y)
    if sigma2 is None:
        log_likelihood = f.log_softmax(1)[torch.arange(len(y)), y].sum()
    else:
        Lambda = Lambda / sigma2 ** (1 if output == "ggn" else 2)
        log_likelihood = torch.distributions.Normal(f, torch.full_like(f, math.sqrt(sigma2))).log_prob(y).sum()
    theta = torch.cat([p.detach().flatten() for p in net.parameters()])
    zero = torch.zeros_like(theta)
    log_prior = torch.distributions.Normal(zero, zero + delta**-0.5).log_prob(theta).sum()
    H = ggn(jacobians(net, views), Lambda) + delta * torch.eye(len(theta), dtype=theta.dtype)
    return log_likelihood + log_prior - torch.linalg.slogdet(H / (2 * math.pi)).logabsdet / 2
