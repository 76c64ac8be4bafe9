"""The two likelihoods, classes and Gaussian noise: log p(y | f), and columns of a root of its curvature Lambda.

    Lambda = -d^2 log p / df^2 = R R^T.     Categorical: R_c = sqrt(p_c) (e_c - p).     Gaussian: R = I / sigma.

| output | columns | what it is |
|---|---|---|
| ggn | R Q | exact; the columns of Q span what R does not send to 0 |
| trio | R q, R q', R r | the largest two, a random one for all others: unbiased, nearly exact where p is sure |
| mc | sum_c r_c R_c, r_c random signs | one column, unbiased for Lambda; log-determinants of few data are too small |
| label | e_y - p, y drawn from p | one column, the sampled Fisher; the draw hides part of the derivative |
| ef | e_y - p, y the true label | one column, the empirical Fisher: cheap and biased |

`mc` costs as much as `label` and has far less variance where p is nearly one-hot, because no column is ever left out.
Gaussian columns are given for unit noise; `scale` carries sigma.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.errors import InputError, choose
from augury.core.rng import rows

OUTPUTS = ("ggn", "trio", "mc", "label", "ef")
EXPECTED = ("ggn", "trio", "mc")  # those whose columns square to Lambda, on average at least
ITERATIONS = 8  # of the power method, for the largest two columns


class Likelihood(nn.Module, ABC):
    """p(y | f) of an exponential family whose natural parameter is the network's output."""

    @abstractmethod
    def check(self, f: Tensor, y: Tensor) -> None:
        """Raise unless the shapes, types and labels of y fit the outputs f."""

    @abstractmethod
    def log_probs(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B ..."]) -> Float[Tensor, " B"]:
        """Return log p(y | f) of every datum."""

    def log_prob(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B ..."]) -> Float[Tensor, ""]:
        """Return log p(y | f), summed over the batch."""
        return self.log_probs(f, y).sum()

    @abstractmethod
    def root(self, f: Float[Tensor, "B C"], signs: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        """Return R r for a combination r of the columns of R."""

    @abstractmethod
    def transposed(self, f: Float[Tensor, "B C"], v: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        """Return R^T v."""

    @abstractmethod
    def residual(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B ..."]) -> Float[Tensor, "B C"]:
        """Return d log p(y | f) / df for unit noise."""

    @abstractmethod
    def draw(self, f: Float[Tensor, "B C"], rng: torch.Generator) -> Shaped[Tensor, "B ..."]:
        """Return labels drawn from p(y | f) with unit noise."""

    @abstractmethod
    def scale(self, output: str) -> Float[Tensor, ""]:
        """Return the factor of the unit-noise curvature."""

    @abstractmethod
    def from_sums(self, log_likelihood: float, residual: float, numbers: float) -> Float[Tensor, ""]:
        """Return the log-likelihood from the sums of a pass over the data, differentiable in the noise."""

    def trace(self, f: Float[Tensor, "B C"]) -> Float[Tensor, ""]:
        """Return tr Lambda for unit noise, summed over the batch."""
        return f.new_tensor(float(f.numel()))

    def span(self, f: Float[Tensor, "B C"]) -> Iterator[Float[Tensor, "B C"]]:
        """Yield orthonormal combinations q of columns with sum_q R q q^T R^T = R R^T, to first order in f too."""
        for c in range(f.shape[1]):
            yield torch.eye(f.shape[1]).to(f)[c].expand_as(f)

    @torch.no_grad()
    def trio(self, f: Float[Tensor, "B C"], rng: torch.Generator) -> list[Float[Tensor, "B C"]]:
        """Return the two combinations that R makes largest, and one whose square is all others' on average."""
        drawn = rows(lambda B: torch.randn(B, 3, f.shape[1], generator=rng, device=rng.device), len(f), rng).to(f)
        q = torch.linalg.qr(drawn.mT)[0]
        for _ in range(ITERATIONS):
            larger = [self.transposed(f, self.root(f, q[..., k])) for k in (0, 1)]
            q = torch.linalg.qr(torch.stack([*larger, drawn[:, 2]], 2))[0]
        return [q[..., 0], q[..., 1], q[..., 2] * (f.shape[1] - 2) ** 0.5]

    def columns(
        self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B ..."], output: str, rng: torch.Generator
    ) -> Iterator[Float[Tensor, "B C"]]:
        """Yield the columns of the chosen output curvature."""
        choose("output", output, OUTPUTS)
        if output in ("ggn", "trio"):
            few = output == "ggn" or f.shape[1] <= 3
            for q in self.span(f.detach()) if few else self.trio(f.detach(), rng):
                yield self.root(f, q)
        elif output == "mc":
            signs = _drawn(lambda shape: torch.randint(2, shape, generator=rng, device=rng.device), f, rng) * 2 - 1
            yield self.root(f, signs)
        else:
            yield self.residual(f, y if output == "ef" else self.draw(f.detach(), rng))


def _drawn(draw: Callable[[tuple[int, int]], Tensor], f: Float[Tensor, "B C"], rng: torch.Generator) -> Tensor:
    return rows(lambda B: draw((B, f.shape[1])), len(f), rng).to(f)


class Categorical(Likelihood):
    """Classification: f are logits."""

    def check(self, f: Tensor, y: Tensor) -> None:
        if f.ndim != 2 or y.shape != f.shape[:1] or y.dtype != torch.int64:
            raise InputError(
                f"classification needs outputs [batch, classes] and labels [batch] of type int64; got outputs "
                f"{list(f.shape)} and labels {list(y.shape)} of type {y.dtype}. For numbers choose regression."
            )
        low, high = (int(y.min()), int(y.max())) if len(y) else (0, 0)
        if low < 0 or high >= f.shape[1]:
            raise InputError(
                f"labels must lie in 0 ... {f.shape[1] - 1}, one for each of the network's {f.shape[1]} outputs; got "
                f"{low} ... {high}. Number the classes from 0, or give the network an output for every class."
            )
        refuse_probabilities(f)

    def log_probs(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, " B"]) -> Float[Tensor, " B"]:
        return -F.cross_entropy(f, y, reduction="none")

    def root(self, f: Float[Tensor, "B C"], signs: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        """Return sum_c r_c sqrt(p_c) (e_c - p)."""
        log_p = f.log_softmax(1)
        weighted = signs * (log_p / 2).exp()
        return weighted - log_p.exp() * weighted.sum(1, keepdim=True)

    def trace(self, f: Float[Tensor, "B C"]) -> Float[Tensor, ""]:
        return (1 - f.softmax(1).square().sum(1)).sum()

    def transposed(self, f: Float[Tensor, "B C"], v: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        p = f.softmax(1)
        return p.sqrt() * (v - (p * v).sum(1, keepdim=True))

    def span(self, f: Float[Tensor, "B C"]) -> Iterator[Float[Tensor, "B C"]]:
        """Yield one combination fewer than there are classes: R sends s = sqrt(p) to 0, because p sums to 1.

        A reflection that takes s to the first axis takes the other axes to a basis of what is left:
        q_c = e_c - s_c (s + e_1) / (1 + s_1). As R s = 0, nothing is lost by holding q fixed when f moves.
        """
        if f.shape[1] == 1:
            yield from super().span(f)
            return
        s, e = f.softmax(1).sqrt(), torch.eye(f.shape[1]).to(f)
        mirror = (s + e[0]) / (1 + s[:, :1])
        for c in range(1, f.shape[1]):
            yield e[c] - s[:, c : c + 1] * mirror

    def residual(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, " B"]) -> Float[Tensor, "B C"]:
        return F.one_hot(y, f.shape[1]).to(f) - f.softmax(1)

    def draw(self, f: Float[Tensor, "B C"], rng: torch.Generator) -> Shaped[Tensor, " B"]:
        # As torch.multinomial does it.
        clock = _drawn(
            lambda shape: torch.empty(shape, dtype=f.dtype, device=rng.device).exponential_(generator=rng), f, rng
        )
        return (f.softmax(1) / clock).argmax(1)

    def scale(self, output: str) -> Float[Tensor, ""]:
        return torch.ones(())

    def from_sums(self, log_likelihood: float, residual: float, numbers: float) -> Float[Tensor, ""]:
        return torch.tensor(log_likelihood, dtype=torch.float64)


def refuse_probabilities(f: Float[Tensor, "B C"]) -> None:
    """Raise if the outputs of a classifier are probabilities: another softmax of them could never be sure."""
    if f.shape[1] > 1 and bool((f >= 0).all()) and bool(((f.sum(1) - 1).abs() < 1e-4).all()):
        raise InputError(
            "the outputs of a classifier must be logits; every row of them sums to 1, so the network ends in a "
            "softmax. Remove it."
        )


class Gaussian(Likelihood):
    """Regression with one observation noise sigma^2, learned by the evidence."""

    def __init__(self, sigma2: float = 1.0) -> None:
        super().__init__()
        if not sigma2 > 0:
            raise InputError(f"sigma2 must be a positive noise variance; got {sigma2}.")
        self.log_sigma2 = nn.Parameter(torch.tensor(float(sigma2)).log())

    def check(self, f: Tensor, y: Tensor) -> None:
        if f.ndim != 2 or y.shape != f.shape:
            raise InputError(
                f"regression needs outputs and targets of one shape [batch, numbers]; got outputs {list(f.shape)} and "
                f"targets {list(y.shape)}. One number per row is [batch, 1]: y[:, None]."
            )

    def log_probs(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B C"]) -> Float[Tensor, " B"]:
        return _log_normal((y - f).square().sum(1), f.shape[1], self.log_sigma2.to(f))

    def root(self, f: Float[Tensor, "B C"], signs: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        """Return r itself: for unit noise Lambda is the identity."""
        return signs

    def transposed(self, f: Float[Tensor, "B C"], v: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        return v

    def residual(self, f: Float[Tensor, "B C"], y: Shaped[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        return y - f

    def draw(self, f: Float[Tensor, "B C"], rng: torch.Generator) -> Shaped[Tensor, "B C"]:
        return f + _drawn(lambda shape: torch.randn(shape, generator=rng, device=rng.device), f, rng)

    def scale(self, output: str) -> Float[Tensor, ""]:
        """Return 1 / sigma^2, or its square for the empirical Fisher, whose columns hold the true residual."""
        return (-self.log_sigma2 * (2 if output == "ef" else 1)).exp()

    def from_sums(self, log_likelihood: float, residual: float, numbers: float) -> Float[Tensor, ""]:
        return _log_normal(residual, numbers, self.log_sigma2.double())


def _log_normal(squares: Tensor | float, numbers: int | float, log_sigma2: Tensor) -> Tensor:
    return -(squares / log_sigma2.exp() + numbers * (log_sigma2 + math.log(2 * math.pi))) / 2


LIKELIHOODS = {"classification": Categorical, "regression": Gaussian}


def guess(y: Shaped[Tensor, "N ..."]) -> float:
    """Return the log probability of targets under their own distribution, whatever the inputs."""
    N = len(y)
    if not y.is_floating_point():
        n = torch.unique(y, return_counts=True)[1].double()
        return float((n * (n / N).log()).sum())
    variance = y.double().flatten(1).var(0, correction=0).clamp_min(torch.finfo(y.dtype).tiny)
    return float(-N / 2 * ((2 * math.pi * variance).log() + 1).sum())
