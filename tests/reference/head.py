"""Evidences of linear heads, written out plainly: dense matrices, no eigenbasis, no warm start."""

import math

import torch


def gaussian_evidence(Z, y, delta, sigma2):
    """log N(Q^T y; 0, Q^T (sigma^2 I + Z Z^T / delta) Q), Q a basis of all contrasts: the mean is integrated out."""
    N = len(Z)
    Q = torch.linalg.qr(torch.cat([torch.ones(N, 1, dtype=Z.dtype), torch.eye(N, dtype=Z.dtype)[:, 1:]], 1))[0]
    Q = Q[:, 1:]
    S = Q.T @ (sigma2 * torch.eye(N, dtype=Z.dtype) + Z @ Z.T / delta) @ Q
    normal = torch.distributions.MultivariateNormal(torch.zeros(N - 1, dtype=Z.dtype), S)
    return normal.log_prob((Q.T @ y).T).sum()


def softmax_optimum(Z, y, C, delta, bias):
    """Maximise the log posterior by Newton's method with the full Hessian; the last column is the bias."""
    Zp = torch.cat([Z, torch.ones(len(Z), 1, dtype=Z.dtype)], 1)
    r = Zp.shape[1]
    tau = torch.full((C, r), float(delta), dtype=Z.dtype)
    tau[:, -1] = bias

    def J(w):
        Theta = w.view(C, r)
        return (Zp @ Theta.T).log_softmax(1)[torch.arange(len(y)), y].sum() - (tau * Theta**2).sum() / 2

    w = torch.zeros(C * r, dtype=Z.dtype)
    for _ in range(30):
        g = torch.autograd.functional.jacobian(J, w)
        H = torch.autograd.functional.hessian(J, w)
        w = w - torch.linalg.solve(H - 1e-12 * torch.eye(len(w), dtype=Z.dtype), g)
    return w.view(C, r), J(w)


def kron_logdet(Z, P, delta):
    """log|A (x) G / N + delta| - C d log delta with the Kronecker product written out."""
    A = Z.T @ Z
    G = sum(torch.diag(p) - torch.outer(p, p) for p in P)
    n = len(A) * len(G)
    H = torch.kron(A, G) / len(Z) + delta * torch.eye(n, dtype=Z.dtype)
    return torch.logdet(H) - n * math.log(delta)


def softmax_evidence(Z, y, C, delta, bias):
    """The Laplace evidence of a softmax head."""
    Theta, value = softmax_optimum(Z, y, C, delta, bias)
    P = (Z @ Theta[:, :-1].T + Theta[:, -1]).softmax(1)
    return value - kron_logdet(Z, P, delta) / 2


def two_class_evidence(z, y, delta, bias):
    """log p(D) of two classes and one feature, by a fine grid: only the difference of two logits matters.

    With w_c ~ N(0, 1 / delta) and b_c ~ N(0, 1 / bias), the differences are N(0, 2 / delta) and N(0, 2 / bias).
    """
    s, t = (math.sqrt(2 / v) for v in (delta, bias))
    w = torch.linspace(-8 * s, 8 * s, 301, dtype=z.dtype)
    b = torch.linspace(-8 * t, 8 * t, 1201, dtype=z.dtype)
    logits = w[:, None] * z[:, None, None] + b  # [N, w, b]: the logit of class 1 over class 0
    log_p = torch.nn.functional.logsigmoid(torch.where(y[:, None, None] == 1, logits, -logits)).sum(0)
    normal = torch.distributions.Normal
    prior = normal(0.0, s).log_prob(w)[:, None] + normal(0.0, t).log_prob(b)
    return (log_p + prior).logsumexp((0, 1)) + torch.log((w[1] - w[0]) * (b[1] - b[0]))
