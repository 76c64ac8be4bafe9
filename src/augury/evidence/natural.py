r"""Natural-gradient ascent of the bound in a Gaussian posterior over output weights.

In its natural parameters, the precisions P_c and P_c mu_c, the gradient of the bound is the difference between what the
data ask for and what q is (Hoffman et al., 2013; Khan and Nielsen, 2018). With slope s and curvature k of the expected
log-likelihood at the current q, and m the mean outputs, a step of size rho is

    P_c       <-  (1 - rho) P_c      + rho (delta I + sum_n k_nc phi_n phi_n^T)
    P_c mu_c  <-  (1 - rho) P_c mu_c + rho (          sum_n (s_nc + k_nc m_nc) phi_n).

For Gaussian noise, rho = 1 is the exact posterior. No step can leave the cone of positive definite matrices. For
classes rho = 1 is tried, and halved for as long as the bound would fall: at equal draws of the outputs, so that it can
be told. From the posterior at slightly different widths one or two steps do. Adam on (mu, L), the paper's way, needs
hundreds: the features of a kernel machine are highly correlated, which a natural gradient does not notice.

The paper starts at the prior. Under a wide one nearly all draws of the outputs are saturated and have no curvature to
go by. So q starts narrow, about zero outputs, where classes have most: its first step is a ridge regression.
"""

import math

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.rng import generator
from augury.evidence.expected import DRAWS, expected_log_prob
from augury.evidence.likelihood import Likelihood
from augury.evidence.likelihoods import Gaussian
from augury.evidence.posterior import OutputPosterior
from augury.evidence.triangular import cholesky, inverse_triangular

CHUNK = 500
"""Rows of features at a time: bounds the memory of the weighted copies, one for each output."""
NARROW = 1e-4
"""Standard deviation of the first q, in units of the prior's."""
SMALLEST = 1 / 32
"""The least step that is tried: where it does not raise the bound, q is at its best up to rounding."""


class NaturalAscent(nn.Module):
    """Holds the natural parameters of q and moves them; `posterior` and its prior are kept in step."""

    def __init__(
        self,
        posterior: OutputPosterior,
        likelihood: Likelihood,
        fit_prior: bool = True,
        draws: int = DRAWS,
        mix: Float[Tensor, "C J"] | None = None,
    ) -> None:
        super().__init__()
        self.draws, self.mix = draws, mix
        posterior.scale.requires_grad_(False).mul_(NARROW)
        self.posterior = posterior
        self.likelihood, self.fit_prior = likelihood.requires_grad_(False), fit_prior
        R = inverse_triangular(posterior.scale.tril())
        precision = R @ R.mT
        self.register_buffer("precision", precision)
        self.register_buffer("linear", (precision @ posterior.mean.detach()[..., None])[..., 0])

    @torch.no_grad()
    def climb(
        self, phi: Float[Tensor, "N F"], y: Shaped[Tensor, "N ..."], seed: int, steps: int, enough: float
    ) -> float:
        """Move q up the bound of all the data."""
        bound, asked, squares = self._ask(phi, y, seed)
        for _ in range(steps):
            before, was, rho = self._copy(), bound, 1.0
            while True:
                self._move(asked, rho, squares / y.numel())
                bound, new_asked, new_squares = self._ask(phi, y, seed)
                if bound >= was or rho <= SMALLEST:
                    break
                self.load_state_dict(before)
                rho /= 2
            if bound < was:
                self.load_state_dict(before)
                return was
            asked, squares = new_asked, new_squares
            if bound - was < enough * len(phi):
                break
        return bound

    def _ask(self, phi: Tensor, y: Tensor, seed: int) -> tuple[float, tuple[Tensor, Tensor], float]:
        """Return the bound, what the data ask the natural parameters to be, and the expected squared residual."""
        posterior, rng, total, squares = self.posterior, generator(seed, phi.device), 0.0, 0.0
        precision = torch.zeros_like(self.get_buffer("precision"))
        precision.diagonal(dim1=-2, dim2=-1).add_(posterior.delta)
        linear = torch.zeros_like(self.get_buffer("linear"))
        for part, labels in zip(phi.split(CHUNK), y.split(CHUNK), strict=True):
            m, v = posterior.moments(part)
            expected = expected_log_prob(self.likelihood, m, v, labels, rng, self.draws, self.mix)
            weighted = part.mT * expected.curvature.mT[:, None]  # [C, F, B]
            precision.baddbmm_(weighted, part.expand(len(weighted), -1, -1))
            linear.addmm_((expected.slope + expected.curvature * m).mT, part)
            total += float(expected.log_prob)
            if isinstance(self.likelihood, Gaussian):
                squares += float((labels - m).square().sum() + v.sum())
        return total - float(posterior.kl()), (precision, linear), squares

    def _move(self, asked: tuple[Tensor, Tensor], rho: float, variance: float) -> None:
        posterior, precision, linear = self.posterior, self.get_buffer("precision"), self.get_buffer("linear")
        precision.lerp_(asked[0], rho)
        linear.lerp_(asked[1], rho)
        L = inverse_triangular(cholesky(precision))
        posterior.scale.copy_(L)
        posterior.mean.copy_((L.mT @ (L @ linear[..., None]))[..., 0])
        if self.fit_prior:
            posterior.fit_prior_()
            if isinstance(self.likelihood, Gaussian):
                self.likelihood.log_sigma2.fill_(math.log(max(variance, TINY)))

    def _copy(self) -> dict[str, Tensor]:
        return {name: tensor.clone() for name, tensor in self.state_dict().items()}


TINY = 1e-12
"""Least noise variance: a network that fits its targets exactly would make it zero."""
