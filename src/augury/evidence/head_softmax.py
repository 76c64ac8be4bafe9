"""The evidence of a softmax head: Laplace with the Kronecker-factored GGN, prior precision learned.

    log p(D) = sum_n log p(y_n | W z_n + b) - delta/2 |W|^2 - 1/2 sum_ij log(1 + a_j g_i / (N delta)),

a_j the eigenvalues of A = sum_n z_n z_n^T, g_i those of G = sum_n Lambda_n, W and b at their optimum. The bias is not
under the prior whose precision is learned: it only carries the frequencies of the classes, and is maximised.

The determinant depends on W through G, and W on the features and on delta. The derivative follows it there
(implicit function theorem): with H = -d^2 J / dW^2 and T = d(-1/2 log-determinant) / d logits,

    v = H^-1 T^T Z,     d log p(D) / du = explicit part + < v, d(dJ/dW) / du >    for u = delta or the features.

At the best delta the total derivative in delta is 0, so only the derivative in the features remains.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.evidence.likelihoods import Categorical
from augury.evidence.posterior import NaturalAscent, OutputPosterior, expected_log_prob

RELATIVE = 1e-10  # directions whose squared length is below this share of the longest are dropped


@dataclass(frozen=True, eq=False)
class Normalised:
    """Features whose scale does not depend on the extractor."""

    Z: Float[Tensor, "N d"]  # centred, of unit average squared norm
    centre: Float[Tensor, " d"]
    scale: Float[Tensor, ""]  # root mean squared distance from the centre


def normalised(features: Float[Tensor, "N d"]) -> Normalised:
    """Centre features and scale them to unit average norm."""
    centre = features.mean(0)
    away = features - centre
    scale = away.square().sum(1).mean().sqrt()
    if not bool(torch.isfinite(scale.detach())):
        raise InputError("features must be finite; the extractor gave NaN or infinity. Was its training cut short?")
    if float(scale.detach()) == 0:
        raise InputError(
            "features must differ between inputs; the extractor gives the same for all of them. "
            "Are all images alike, or did its pre-training collapse?"
        )
    return Normalised(away / scale, centre, scale)


@dataclass(frozen=True, eq=False)
class Basis:
    """Features in the basis of their principal directions.

    A head under an isotropic prior does not see rotations of Z, so it is solved where Z^T Z is diagonal: one
    eigendecomposition of the smaller of Z^T Z and Z Z^T serves the solver, the determinant of the curvature for every
    prior precision, and the gradient back to Z.
    """

    Z: Float[Tensor, "N r"]  # rotated features; the columns are orthogonal
    a: Float[Tensor, " r"]  # squared lengths of the columns: the eigenvalues of Z^T Z that are not 0
    original: Float[Tensor, "N d"]
    V: Float[Tensor, "d r"] | None  # the rotation, if d < N

    def lift(self, rows: Float[Tensor, "m r"]) -> Float[Tensor, "m d"]:
        """Return rows of the rotated space in the original one."""
        if self.V is not None:
            return rows.to(self.V) @ self.V.T
        # V = Z0^T U a^-1/2 with U = Z a^-1/2: V itself, which is large, is not formed.
        return ((rows / self.a) @ self.Z.T).to(self.original) @ self.original


@torch.no_grad()
def basis(Z: Float[Tensor, "N d"], dtype: torch.dtype = torch.float64) -> Basis:
    Z = Z.detach()
    N, d = Z.shape
    values, vectors = torch.linalg.eigh((Z.T @ Z if d < N else Z @ Z.T).double())
    keep = values > RELATIVE * max(N, d) * values[-1].clamp_min(0)
    a, vectors = values[keep], vectors[:, keep]
    if d < N:
        V = vectors.to(dtype)
        return Basis(Z.to(dtype) @ V, a.to(dtype), Z, V)
    return Basis((vectors * a.sqrt()).to(dtype), a.to(dtype), Z, None)


BIAS = 1e-2
"""Prior precision of the bias: a log-odds of 10 costs half a nat. Keeps a class without examples finite."""

RANGE = (math.log(1e-6), math.log(1e6))  # range of log delta

NEWTON, INNER, HALVINGS = 60, 200, 30
"""Largest number of Newton steps, of inner steps in each, and of halvings of a step."""

STEPS, REACH = 40, 2.0  # largest number of steps in log delta, and the length of one


@dataclass(frozen=True, eq=False)
class Softmax:
    """Softmax regression under a Gaussian prior, solved to the optimum by Newton's method and conjugate gradients.

        J(Theta) = sum_n log p(y_n | Theta z_n) - 1/2 sum_cj tau_j Theta_cj^2

    The columns of Z are (nearly) orthogonal, so diag(h_c a_j + tau_j), with h_c the mean of p_c (1 - p_c), is close to
    the Hessian and preconditions the inner solver. J is concave: every start reaches the same optimum.
    """

    Z: Float[Tensor, "N r"]  # inputs; the last column is constant, for the bias
    Y: Float[Tensor, "N C"]  # labels as unit vectors
    tau: Float[Tensor, " r"]  # prior precision of each column's weights
    a: Float[Tensor, " r"]  # squared lengths of the columns

    def probabilities(self, Theta: Float[Tensor, "C r"]) -> Float[Tensor, "N C"]:
        return (self.Z @ Theta.T).softmax(1)

    def value(self, Theta: Float[Tensor, "C r"]) -> Float[Tensor, ""]:
        fit = ((self.Z @ Theta.T).log_softmax(1) * self.Y).sum()
        return fit - (self.tau * Theta.square()).sum() / 2

    def slope(self, Theta: Float[Tensor, "C r"], P: Float[Tensor, "N C"]) -> Float[Tensor, "C r"]:
        return (self.Y - P).T @ self.Z - self.tau * Theta

    def curved(self, v: Float[Tensor, "C r"], P: Float[Tensor, "N C"]) -> Float[Tensor, "C r"]:
        """Return H v, with H = -d^2 J / dTheta^2."""
        return curvature(P, self.Z @ v.T).T @ self.Z + self.tau * v

    def solve_curved(self, g: Float[Tensor, "C r"], P: Float[Tensor, "N C"], tolerance: float) -> Float[Tensor, "C r"]:
        """Return H^-1 g by conjugate gradients."""
        condition = (P * (1 - P)).mean(0)[:, None] * self.a + self.tau
        x, r = torch.zeros_like(g), g
        z = r / condition
        p, rz = z, (r * z).sum()
        enough = tolerance**2 * rz
        for _ in range(INNER):
            if rz <= enough:
                break
            Hp = self.curved(p, P)
            step = rz / (p * Hp).sum()
            x, r = x + step * p, r - step * Hp
            z = r / condition
            rz, before = (r * z).sum(), rz
            p = z + (rz / before) * p
        return x

    def solve(self, start: Float[Tensor, "C r"], tolerance: float = 1e-6) -> Float[Tensor, "C r"]:
        Theta, value, first = start, self.value(start), None
        for _ in range(NEWTON):
            P = self.probabilities(Theta)
            g = self.slope(Theta, P)
            size = float(g.norm())
            first = first or size
            step = self.solve_curved(g, P, min(0.1, max(size / (first or 1), 1e-9) ** 0.5))
            gain = float((g * step).sum()) / 2
            Theta, value = self._along(Theta, step, value, gain)
            if gain <= tolerance:
                break
        return Theta

    def _along(self, Theta: Tensor, step: Tensor, value: Tensor, gain: float) -> tuple[Tensor, Tensor]:
        share, rounding = 1.0, torch.finfo(Theta.dtype).eps * abs(float(value)) * 10
        for _ in range(HALVINGS):
            there = self.value(Theta + share * step)
            if there >= value + 0.1 * share * gain - rounding:
                return Theta + share * step, there
            share /= 2
        return Theta, value


@dataclass(frozen=True, eq=False)
class SoftmaxFit:
    """A softmax head at its optimum, and its evidence."""

    head: Softmax
    Theta: Float[Tensor, "C q"]  # weights and bias: q = r + 1
    P: Float[Tensor, "N C"]
    delta: float  # prior precision of the weights
    value: float  # log evidence
    slope: float  # its total derivative in log delta
    gamma: float  # how many of the weights the data determine
    v: Float[Tensor, "C q"]  # H^-1 T^T Z
    T: Float[Tensor, "N C"]  # derivative of -1/2 log-determinant in the logits
    g: Float[Tensor, " C"]  # eigenvalues of G

    @property
    def alpha(self) -> Float[Tensor, "N C"]:
        """The head as a combination of inputs, W = alpha^T Z: a warm start on other features."""
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
    Z = torch.cat([features.Z, features.Z.new_ones(len(y), 1)], 1)
    tau = torch.cat([torch.full_like(features.a, delta), features.a.new_tensor([BIAS])])
    a = torch.cat([features.a, features.a.new_tensor([len(y)])])
    return Softmax(Z, F.one_hot(y, C).to(Z), tau, a)


def at_precision(head: Softmax, delta: float, start: Float[Tensor, "C r"], tolerance: float) -> SoftmaxFit:
    tau = head.tau.clone()
    tau[:-1] = delta
    head = Softmax(head.Z, head.Y, tau, head.a)
    Theta = head.solve(start, tolerance)
    P = head.probabilities(Theta)
    g, U = torch.linalg.eigh(torch.diag(P.sum(0)) - P.T @ P)
    g = g.clamp_min(0)
    x = head.a[:-1, None] / (len(P) * delta)  # [r, 1]; x * g is the weight of the data against the prior
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


def curvature(P: Float[Tensor, "N C"], u: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
    """Return Lambda u for every input, Lambda = diag(p) - p p^T."""
    weighted = P * u
    return weighted - P * weighted.sum(1, keepdim=True)


# The variational bound, for few data:
#
#     log p(D)  >=  sum_n E_q log p(y_n | W z_n + b) - KL(q || p),        q(W, b) = prod_j N(w_j; mu_j, Sigma_j)
#
# Laplace's method puts its Gaussian at the mode and, with Kronecker factors, gives every example the same curvature. A
# posterior after few data is not like that, and the error is then larger than the difference between two descriptors.
# Rotation of 350 digits, seven classes, in nats, beside annealed importance sampling, which is nearly exact
# (`benchmarks/head_evidence.py`):
#
# | descriptor | sampling | Laplace, Kronecker | Laplace, exact Hessian | bound |
# |---|---|---|---|---|
# | [1, 1] | -577.9 | -591.5 | -586.2 | -606.6 |
# | [0, 1], the better one | -572.8 | -595.5 | -584.6 | -601.5 |
# | difference | 5.1 | -4.0 | 1.6 | 5.1 |
#
# (The bound also pays for the biases, which the others maximise: the same for every descriptor.)
#
# The j are not classes but contrasts of them, the principal directions of the curvature in the outputs: the data say
# nothing of the sum of all logits, and the blocks of q are less dependent. q starts at the mode, narrow, so that its
# first natural-gradient step is Laplace's method with a full block for each contrast.

ROUNDS_OF_Q, ENOUGH = 20, 3e-4
"""Largest number of natural-gradient steps; they end when one gains less than this per datum, in nats."""
DRAWS = 64  # draws of the outputs per input: with fewer, q fits the draws rather than their distribution
FRESH, ROUNDS = 128, 32
"""Fresh draws for the value, and repetitions of them: an error of a hundredth of a nat per input."""
AFFORDABLE = 5e8  # multiplications in one step, up to a small factor: the bound takes about a second


def affordable(fit: SoftmaxFit) -> bool:
    """Return whether the bound is cheap enough: its cost grows with C N r^2."""
    N, r = fit.head.Z.shape
    return (len(fit.Theta) - 1) * max(N, r) * r**2 <= AFFORDABLE


@torch.no_grad()
def variational(fit: SoftmaxFit) -> float:
    """Return the bound, maximised over q and the prior precision."""
    mix = contrasts(fit.P.double())
    stretch = fit.head.Z.new_ones(fit.Theta.shape[1], dtype=mix.dtype)
    stretch[-1] = math.sqrt(fit.delta / BIAS)  # the bias has its own precision: equivalent to a longer input
    phi, y = fit.head.Z * stretch, fit.head.Y.argmax(1)
    layer = nn.Linear(phi.shape[1], mix.shape[1], bias=False, dtype=phi.dtype, device=phi.device)
    q = OutputPosterior(layer, fit.delta)
    q.mean.copy_(mix.mT @ fit.Theta.to(mix) / stretch)
    NaturalAscent(q, Categorical(), draws=DRAWS, mix=mix).climb(phi, y, 0, ROUNDS_OF_Q, ENOUGH)
    rng, moments = generator(1, phi.device), q.moments(phi)
    drawn = [expected_log_prob(Categorical(), *moments, y, rng, FRESH, mix).log_prob for _ in range(ROUNDS)]
    return float(torch.stack(drawn).mean() - q.kl())


def contrasts(P: Float[Tensor, "N C"]) -> Float[Tensor, "C J"]:
    """Return the principal directions of the curvature in the outputs, without its null direction."""
    curvature = torch.diag(P.sum(0)) - P.mT @ P
    return torch.linalg.eigh(curvature + len(P))[1][:, :-1]  # so lifted, the constant is the last
