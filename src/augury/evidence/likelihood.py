"""What a likelihood is: log p(y | f), and columns of a square root of its curvature Lambda in the outputs.

    Lambda = -d^2 log p / df^2 = R R^T.     Categorical: R_c = sqrt(p_c) (e_c - p).     Gaussian: R = I / sigma.

| output | columns | what it is |
|---|---|---|
| ggn | R Q | exact; the columns of Q span what R does not send to 0 |
| mc | sum_c r_c R_c, r_c random signs | one column, unbiased in value and in every derivative |
| label | e_y - p, y drawn from p | one column, the sampled Fisher; the draw hides part of the derivative |
| ef | e_y - p, y the true label | one column, the empirical Fisher: cheap and biased |

`mc` costs what `label` costs and has far less variance where p is nearly one-hot, because no column is ever left out.
Gaussian columns are given for unit noise; `scale` carries sigma.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.errors import choose

OUTPUTS = ("ggn", "mc", "label", "ef")


class Likelihood(nn.Module, ABC):
    """p(y | f) of an exponential family whose natural parameter is the network's output."""

    @abstractmethod
    def check(self, f: Tensor, y: Tensor) -> None:
        """Raise unless these outputs and these labels or targets belong together."""

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
    def from_sums(self, log_likelihood: float, residual: float, numbers: float) -> Float[Tensor, ""]:
        """Return the log-likelihood from what a pass over the data summed, differentiable in the noise."""

    def span(self, f: Float[Tensor, "B C"]) -> Iterator[Float[Tensor, "B C"]]:
        """Give orthonormal combinations q of columns with sum_q R q q^T R^T = R R^T, to first order in f too."""
        for c in range(f.shape[1]):
            yield torch.eye(f.shape[1]).to(f)[c].expand_as(f)

    def columns(
        self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B ..."], output: str, rng: torch.Generator
    ) -> Iterator[Float[Tensor, "B C"]]:
        """Give the columns of the chosen output curvature, one after the other."""
        choose("output", output, OUTPUTS)
        if output == "ggn":
            for q in self.span(f.detach()):
                yield self.root(f, q)
        elif output == "mc":
            signs = torch.randint(2, f.shape, generator=rng, device=rng.device).to(f) * 2 - 1
            yield self.root(f, signs)
        else:
            yield self.residual(f, y if output == "ef" else self.draw(f.detach(), rng))
