"""Softmax regression under a Gaussian prior, solved to the optimum: Newton's method with conjugate gradients inside.

    J(Theta) = sum_n log p(y_n | Theta z_n) - 1/2 sum_cj tau_j Theta_cj^2

The columns of Z are (nearly) orthogonal, so diag(h_c a_j + tau_j), with h_c the mean of p_c (1 - p_c), is close to the
Hessian and preconditions the inner solver. J is concave: from any start the same optimum is reached.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

NEWTON, INNER, HALVINGS = 60, 200, 30
"""Most Newton steps, most inner steps in each, most halvings of a step."""


@dataclass(frozen=True, eq=False)
class Softmax:
    """One softmax regression."""

    Z: Float[Tensor, "N r"]
    """Inputs, a constant column among them where there is a bias."""
    Y: Float[Tensor, "N C"]
    """Labels as unit vectors."""
    tau: Float[Tensor, " r"]
    """Prior precision of each column's weights."""
    a: Float[Tensor, " r"]
    """Squared lengths of the columns."""

    def probabilities(self, Theta: Float[Tensor, "C r"]) -> Float[Tensor, "N C"]:
        """Return p."""
        return (self.Z @ Theta.T).softmax(1)

    def value(self, Theta: Float[Tensor, "C r"]) -> Float[Tensor, ""]:
        """Return J."""
        fit = ((self.Z @ Theta.T).log_softmax(1) * self.Y).sum()
        return fit - (self.tau * Theta.square()).sum() / 2

    def slope(self, Theta: Float[Tensor, "C r"], P: Float[Tensor, "N C"]) -> Float[Tensor, "C r"]:
        """Return dJ / dTheta."""
        return (self.Y - P).T @ self.Z - self.tau * Theta

    def curved(self, v: Float[Tensor, "C r"], P: Float[Tensor, "N C"]) -> Float[Tensor, "C r"]:
        """Return H v, with H = -d^2 J / dTheta^2."""
        return curvature(P, self.Z @ v.T).T @ self.Z + self.tau * v

    def solve_curved(
        self, g: Float[Tensor, "C r"], P: Float[Tensor, "N C"], tolerance: float
    ) -> Float[Tensor, "C r"]:
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
        """Return the maximum of J."""
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


def curvature(P: Float[Tensor, "N C"], u: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
    """Return Lambda u for every input, Lambda = diag(p) - p p^T."""
    weighted = P * u
    return weighted - P * weighted.sum(1, keepdim=True)
