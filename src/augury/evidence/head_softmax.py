"""The evidence of a softmax head: Laplace with the Kronecker-factored GGN, prior precision learned.

    log p(D) = sum_n log p(y_n | W z_n + b) - delta/2 |W|^2 - 1/2 sum_ij log(1 + a_j g_i / (N delta)),

a_j the eigenvalues of A = sum_n z_n z_n^T, g_i those of G = sum_n Lambda_n, W and b at their optimum. The bias is not
under the prior whose precision is learned: it only carries the frequencies of the classes, and is maximised.

The determinant depends on W through G, and W on the features and on delta. The derivative follows it there
(implicit function theorem): with H = -d^2 J / dW^2 and T = d(-1/2 log-determinant) / d logits,

    v = H^-1 T^T Z,     d log p(D) / du = explicit part + < v, d(dJ/dW) / du >    for u = delta or the features.

At the best delta the total derivative in delta is 0, so features are all that is left to differentiate in.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from augury.evidence.head_basis import Basis
from augury.evidence.head_solver import Softmax, curvature

BIAS = 1e-2
"""Prior precision of the bias: a log-odds of 10 costs half a nat. Keeps a class without examples finite."""

RANGE = (math.log(1e-6), math.log(1e6))
"""Where log delta may be."""

STEPS, REACH = 40, 2.0
"""Most steps in log delta; how far one may go."""


@dataclass(frozen=True, eq=False)
class SoftmaxFit:
    """A softmax head at its optimum, and its evidence."""

    head: Softmax
    """The problem, with a constant column at its end."""
    Theta: Float[Tensor, "C q"]
    """Weights and bias: q = r + 1."""
    P: Float[Tensor, "N C"]
    """Probabilities."""
    delta: float
    """Prior precision of the weights."""
    value: float
    """Log evidence."""
    slope: float
    """Its total derivative in log delta."""
    gamma: float
    """How many of the weights the data determine."""
    v: Float[Tensor, "C q"]
    """H^-1 T^T Z."""
    T: Float[Tensor, "N C"]
    """Derivative of -1/2 log-determinant in the logits."""
    g: Float[Tensor, " C"]
    """Eigenvalues of G."""

    @property
    def alpha(self) -> Float[Tensor, "N C"]:
        """The head as a combination of inputs, W = alpha^T Z: where to start on other features."""
        return (self.head.Y - self.P) / self.delta

    def gradient(self) -> Float[Tensor, "N r"]:
        """Return the derivative of the log evidence in the rotated features."""
        Z, W = self.head.Z[:, :-1], self.Theta[:, :-1]
        moved = curvature(self.P, self.head.Z @ self.v.T)
        x = self.g / (len(Z) * self.delta)
        shrink = (x / (1 + self.head.a[:-1, None] * x)).sum(1)
        E = self.head.Y - self.P
        return (E + self.T - moved) @ W + E @ self.v[:, :-1] - Z * shrink


def problem(features: Basis, y: Int[Tensor, " N"], C: int, delta: float) -> Softmax:
    """Return the regression of labels on features and a constant."""
    Z = torch.cat([features.Z, features.Z.new_ones(len(y), 1)], 1)
    tau = torch.cat([torch.full_like(features.a, delta), features.a.new_tensor([BIAS])])
    a = torch.cat([features.a, features.a.new_tensor([len(y)])])
    return Softmax(Z, F.one_hot(y, C).to(Z), tau, a)


def at_precision(head: Softmax, delta: float, start: Float[Tensor, "C r"], tolerance: float) -> SoftmaxFit:
    """Return the head and its evidence for one prior precision."""
    tau = head.tau.clone()
    tau[:-1] = delta
    head = Softmax(head.Z, head.Y, tau, head.a)
    Theta = head.solve(start, tolerance)
    P = head.probabilities(Theta)
    g, U = torch.linalg.eigh(torch.diag(P.sum(0)) - P.T @ P)
    g = g.clamp_min(0)
    x = head.a[:-1, None] / (len(P) * delta)  # [r, 1]; x * g is what the data say beside the prior
    share = x * g / (1 + x * g)
    Q = (U * (x / (1 + x * g)).sum(0)) @ U.T
    T = -curvature(P, Q.diagonal() - 2 * P @ Q) / 2
    v = head.solve_curved(T.T @ head.Z, P, math.sqrt(tolerance) / 10)
    slope = (share.sum() - delta * Theta[:, :-1].square().sum()) / 2
    slope = slope - delta * (v[:, :-1] * Theta[:, :-1]).sum()
    value = head.value(Theta) - (x * g).log1p().sum() / 2
    return SoftmaxFit(head, Theta, P, delta, float(value), float(slope), float(share.sum()), v, T, g)


@torch.no_grad()
def fit_softmax(
    features: Basis,
    y: Int[Tensor, " N"],
    C: int,
    *,
    delta: float = 1.0,
    alpha: Float[Tensor, "N C"] | None = None,
    tolerance: float = 1e-2,
) -> SoftmaxFit:
    """Return the head and its prior precision with the highest evidence."""
    head = problem(features, y, C, delta)
    start = head.Z.new_zeros(C, head.Z.shape[1]) if alpha is None else alpha.T @ head.Z
    start[:, -1] = 0
    t, before = math.log(delta), None
    for _ in range(STEPS):
        fit = at_precision(head, math.exp(t), start, tolerance)
        start = fit.Theta
        step = _step(t, fit, before)
        if abs(step * fit.slope) <= tolerance or t + step == t:
            break
        before, t = (t, fit.slope), t + step
    return fit


def _step(t: float, fit: SoftmaxFit, before: tuple[float, float] | None) -> float:
    """Return a secant step in log delta where the slope falls, else MacKay's for small changes; within `RANGE`."""
    step = 2 * fit.slope / max(fit.gamma, 1e-6)
    if before is not None and t != before[0]:
        bend = (fit.slope - before[1]) / (t - before[0])
        if bend < 0:
            step = -fit.slope / bend
    return min(max(t + max(-REACH, min(REACH, step)), RANGE[0]), RANGE[1]) - t
