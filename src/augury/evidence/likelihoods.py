"""Likelihoods: log p(y | f), and columns of a square root of its curvature Lambda in the outputs.

    Lambda = -d^2 log p / df^2 = R R^T.     Categorical: R_c = sqrt(p_c) (e_c - p).     Gaussian: R = I / sigma.

| output | columns | what it is |
|---|---|---|
| ggn | R_1 ... R_C | exact |
| mc | sum_c r_c R_c, r_c random signs | one column, unbiased in value and in every derivative |
| label | e_y - p, y drawn from p | one column, the sampled Fisher; the draw hides part of the derivative |
| ef | e_y - p, y the true label | one column, the empirical Fisher: cheap and biased |

`mc` costs what `label` costs and has far less variance where p is nearly one-hot, because no column is ever left out.
Gaussian columns are given for unit noise; `scale` carries sigma.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.errors import choose

OUTPUTS = ("ggn", "mc", "label", "ef")


class Likelihood(nn.Module, ABC):
    """p(y | f) of an exponential family whose natural parameter is the network's output."""

    @abstractmethod
    def log_prob(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B ..."]) -> Float[Tensor, ""]:
        """Return log p(y | f), summed over the batch."""

    @abstractmethod
    def root(self, f: Float[Tensor, "B C"], signs: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        """Return R r for a combination r of the columns of R."""

    @abstractmethod
    def residual(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B ..."]) -> Float[Tensor, "B C"]:
        """Return d log p(y | f) / df for unit noise."""

    @abstractmethod
    def draw(self, f: Float[Tensor, "B C"], rng: torch.Generator) -> Shaped[Tensor, "B ..."]:
        """Return labels drawn from p(y | f) with unit noise."""

    @abstractmethod
    def scale(self, output: str) -> Float[Tensor, ""]:
        """Return what the unit-noise curvature is to be multiplied with."""

    @abstractmethod
    def from_sums(self, log_likelihood: float, residual: float, N: int) -> Float[Tensor, ""]:
        """Return the log-likelihood from what a pass over the data summed, differentiable in the noise."""

    def columns(
        self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B ..."], output: str, rng: torch.Generator
    ) -> Iterator[Float[Tensor, "B C"]]:
        """Give the columns of the chosen output curvature, one after the other.

        Parameters
        ----------
        f
            Averaged outputs.
        y
            Labels or targets; only "ef" looks at them.
        output
            One of `OUTPUTS`.
        rng
            Where random signs and labels come from.

        Yields
        ------
        Tensor
            A column, differentiable in f.
        """
        choose("output", output, OUTPUTS)
        if output == "ggn":
            for c in range(f.shape[1]):
                yield self.root(f, F.one_hot(torch.tensor(c), f.shape[1]).to(f).expand_as(f))
        elif output == "mc":
            signs = torch.randint(2, f.shape, generator=rng, device=rng.device).to(f) * 2 - 1
            yield self.root(f, signs)
        else:
            yield self.residual(f, y if output == "ef" else self.draw(f.detach(), rng))


class Categorical(Likelihood):
    """Classification: f are logits."""

    def log_prob(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return log p(y | f), summed.

        Parameters
        ----------
        f, y
            Logits and labels.

        Returns
        -------
        Tensor
            The sum.
        """
        return -F.cross_entropy(f, y, reduction="sum")

    def root(self, f: Float[Tensor, "B C"], signs: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        """Return sum_c r_c sqrt(p_c) (e_c - p).

        Parameters
        ----------
        f, signs
            Logits; the combination r.

        Returns
        -------
        Tensor
            The combination of columns.
        """
        log_p = f.log_softmax(1)
        weighted = signs * (log_p / 2).exp()
        return weighted - log_p.exp() * weighted.sum(1, keepdim=True)

    def residual(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, " B"]) -> Float[Tensor, "B C"]:
        """Return e_y - p.

        Parameters
        ----------
        f, y
            Logits and labels.

        Returns
        -------
        Tensor
            The gradient of the log-likelihood.
        """
        return F.one_hot(y, f.shape[1]).to(f) - f.softmax(1)

    def draw(self, f: Float[Tensor, "B C"], rng: torch.Generator) -> Shaped[Tensor, " B"]:
        """Draw labels.

        Parameters
        ----------
        f
            Logits.
        rng
            Where the draws come from.

        Returns
        -------
        Tensor
            Labels.
        """
        return torch.multinomial(f.softmax(1), 1, generator=rng)[:, 0]

    def scale(self, output: str) -> Float[Tensor, ""]:
        """Return 1: there is no noise to learn.

        Parameters
        ----------
        output
            One of `OUTPUTS`.

        Returns
        -------
        Tensor
            One.
        """
        return torch.ones(())

    def from_sums(self, log_likelihood: float, residual: float, N: int) -> Float[Tensor, ""]:
        """Return the log-likelihood itself.

        Parameters
        ----------
        log_likelihood, residual, N
            What a pass over the data summed.

        Returns
        -------
        Tensor
            The log-likelihood.
        """
        return torch.tensor(log_likelihood, dtype=torch.float64)


class Gaussian(Likelihood):
    """Regression with one observation noise sigma^2, learned by the evidence.

    Parameters
    ----------
    sigma2
        Where the noise variance starts.
    """

    def __init__(self, sigma2: float = 1.0) -> None:
        super().__init__()
        self.log_sigma2 = nn.Parameter(torch.tensor(sigma2).log())

    def log_prob(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B C"]) -> Float[Tensor, ""]:
        """Return log N(y; f, sigma^2 I), summed.

        Parameters
        ----------
        f, y
            Outputs and targets.

        Returns
        -------
        Tensor
            The sum.
        """
        log_sigma2 = self.log_sigma2.to(f)
        return (
            -((y - f).square().sum() / log_sigma2.exp() + f.numel() * (log_sigma2 + math.log(2 * math.pi)))
            / 2
        )

    def root(self, f: Float[Tensor, "B C"], signs: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        """Return r itself: for unit noise Lambda is the identity.

        Parameters
        ----------
        f, signs
            Outputs; the combination r.

        Returns
        -------
        Tensor
            The combination.
        """
        return signs

    def residual(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        """Return y - f.

        Parameters
        ----------
        f, y
            Outputs and targets.

        Returns
        -------
        Tensor
            The gradient of the log-likelihood for unit noise.
        """
        return y - f

    def draw(self, f: Float[Tensor, "B C"], rng: torch.Generator) -> Shaped[Tensor, "B C"]:
        """Draw targets with unit noise.

        Parameters
        ----------
        f
            Outputs.
        rng
            Where the draws come from.

        Returns
        -------
        Tensor
            Targets.
        """
        return f + torch.randn(f.shape, generator=rng, device=rng.device).to(f)

    def scale(self, output: str) -> Float[Tensor, ""]:
        """Return 1 / sigma^2, or its square for the empirical Fisher, whose columns hold the true residual.

        Parameters
        ----------
        output
            One of `OUTPUTS`.

        Returns
        -------
        Tensor
            The factor, differentiable in log sigma^2.
        """
        return (-self.log_sigma2 * (2 if output == "ef" else 1)).exp()

    def from_sums(self, log_likelihood: float, residual: float, N: int) -> Float[Tensor, ""]:
        """Return the log-likelihood of N residuals in all, at the noise of now.

        Parameters
        ----------
        log_likelihood, residual, N
            What a pass over the data summed; N counts numbers, not rows.

        Returns
        -------
        Tensor
            The log-likelihood, differentiable in log sigma^2.
        """
        log_sigma2 = self.log_sigma2.double()
        return -(residual / log_sigma2.exp() + N * (log_sigma2 + math.log(2 * math.pi))) / 2


LIKELIHOODS = {"classification": Categorical, "regression": Gaussian}
