"""The variational lower bound on the evidence of an orbit-averaged shallow network (paper B, Eqs. 9-10).

    log p(D) >= sum_n E_q E_eps log p(y_n | W_2 phi_hat(x_n; eta, eps)) - KL(q(W_2) || p(W_2))

A mini-batch of B among N gives N/B times its part of the sum. The KL does not depend on eta: for q at its optimum the
gradient of the expected log-likelihood alone is the gradient of the bound that has been maximised over q, by the
envelope theorem. For q that lags behind eta it is not: it pulls eta back to the widths that q was fitted at, the more
strongly the more data there are. So q comes first and eta second (see `methods.invariant_weights`).

For Gaussian noise and fixed features, q can be exact, and the bound is then the log evidence itself.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.rng import generator
from augury.evidence.likelihoods import Likelihood
from augury.evidence.posterior import DRAWS, OutputPosterior, expected_log_prob
from augury.models.shallow import ShallowOrbit


class Elbo:
    """The bound of one network with its posterior and its likelihood."""

    fit_prior = True  # whether the prior precision is learned

    def __init__(self, model: ShallowOrbit, posterior: OutputPosterior, likelihood: Likelihood, N: int) -> None:
        self.model, self.posterior, self.likelihood, self.N = model, posterior, likelihood, N

    @property
    def eta(self) -> list[Tensor]:
        return list(self.model.transform.parameters())

    def log_likelihood(
        self, phi: Float[Tensor, "B F"], y: Shaped[Tensor, "B ..."], rng: torch.Generator, draws: int = DRAWS
    ) -> Float[Tensor, ""]:
        """Return the sum over a batch of E_q log p(y | f)."""
        m, v = self.posterior.moments(phi)
        return expected_log_prob(self.likelihood, m, v, y, rng, draws).log_prob

    def estimate(
        self, x: Float[Tensor, "B ..."], y: Shaped[Tensor, "B ..."], rng: torch.Generator
    ) -> Float[Tensor, ""]:
        """Return an unbiased estimate of the bound from a mini-batch."""
        eps = self.model.noise(len(x), self.model.samples, rng).to(x)
        phi = self.model.mean_features(x, eps)
        return self.log_likelihood(phi, y, rng) * (self.N / len(x)) - self.posterior.kl()

    @torch.no_grad()
    def value(self, batches: Iterable[tuple[Tensor, Tensor]], rng: torch.Generator) -> float:
        total, n = 0.0, 0
        for x, y in batches:
            eps = self.model.noise(len(x), self.model.samples_eval, rng).to(x)
            total += float(self.log_likelihood(self.model.mean_features(x, eps), y, rng))
            n += len(x)
        return total * self.N / n - float(self.posterior.kl())

    def gradient(self, x: Float[Tensor, "B ..."], y: Shaped[Tensor, "B ..."], seed: int) -> tuple[Tensor, ...]:
        """Return d bound / d eta at the noise of a seed."""
        rng = generator(seed, x.device)
        return torch.autograd.grad(self.estimate(x, y, rng), self.eta)
