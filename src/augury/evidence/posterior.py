"""A Gaussian posterior over the weights of a linear output layer, and its natural-gradient ascent (paper B, app. A).

    q(W_2) = prod_c N(w_c; mu_c, Sigma_c),   Sigma_c = L_c^T L_c,   L_c lower triangular,   p(w_c) = N(0, I / delta)

One full covariance block for each output. With L_c so, L_c^-1 is the Cholesky factor of the precision. For features
phi the outputs f = W_2 phi are Gaussian again (the local reparameterisation), each with

    mean mu_c . phi     and variance |L_c phi|^2,

    KL(q || p) = 1/2 sum_c [ delta (|L_c|_F^2 + |mu_c|^2) - F - F log delta - 2 sum_i log |L_c,ii| ],

which is least, in delta, at delta = C F / sum_c (|L_c|_F^2 + |mu_c|^2).
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.errors import InputError, RunError
from augury.core.rng import generator, rows
from augury.core.world import ALONE, World
from augury.evidence.likelihoods import Categorical, Gaussian, Likelihood

DRAWS = 8  # draws of the outputs per input: nearly free, where the paper draws all weights together once


@dataclass(frozen=True)
class Expected:
    """E log p(y | f) for f ~ N(m, diag v) on a batch, and what a natural gradient needs of it.

    | | E log p(y given f) | slope = d/dm | curvature = -2 d/dv = -E d^2 log p / df^2 |
    |---|---|---|---|
    | Gaussian | closed form | (y - m) / sigma^2 | 1 / sigma^2 |
    | categorical | mean over draws f = m + sqrt(v) z | E[e_y - p] | E[p (1 - p)] |

    The curvature of the categorical comes from Price's theorem: never negative, whatever the draws, so that a step
    along the natural gradient keeps every covariance positive definite.
    """

    log_prob: Float[Tensor, ""]  # summed over the batch; differentiable in m and v
    slope: Float[Tensor, "B J"]
    curvature: Float[Tensor, "B J"]


def expected_log_prob(
    likelihood: Likelihood,
    m: Float[Tensor, "B J"],
    v: Float[Tensor, "B J"],
    y: Shaped[Tensor, "B ..."],
    rng: torch.Generator,
    draws: int = DRAWS,
    mix: Float[Tensor, "C J"] | None = None,
) -> Expected:
    """Return E log p(y | f) for f ~ N(m, diag v); with `mix`, the logits are f mix^T."""
    likelihood.check(m if mix is None else m @ mix.mT, y)
    if isinstance(likelihood, Gaussian):
        precision = likelihood.scale("ggn").to(m)
        value = likelihood.log_prob(m, y) - precision * v.sum() / 2
        return Expected(value, (precision * (y - m)).detach(), precision.detach().expand_as(m))
    if not isinstance(likelihood, Categorical):
        raise InputError(f"the bound knows classes and Gaussian noise; got {type(likelihood).__name__}.")
    z = rows(lambda B: torch.randn(draws, B, m.shape[1], generator=rng, device=rng.device), len(m), rng, 1).to(m)
    tiny = torch.finfo(v.dtype).tiny  # keeps the slope of the root finite for an input without features
    f = m + v.clamp(min=tiny).sqrt() * z
    log_p = (f if mix is None else f @ mix.mT).log_softmax(-1)
    value = log_p.gather(-1, y.expand(draws, -1)[..., None]).sum() / draws
    p = log_p.detach().exp()
    slope = F.one_hot(y, p.shape[-1]).to(m) - p.mean(0)
    if mix is None:
        return Expected(value, slope, (p * (1 - p)).mean(0))
    return Expected(value, slope @ mix, (p @ mix.square() - (p @ mix).square()).mean(0))


class OutputPosterior(nn.Module):
    """q(W_2) and the prior precision delta."""

    mean: nn.Parameter  # means [C, F]: the weight of the layer itself
    scale: nn.Parameter  # lower triangles L [C, F, F]; entries above their diagonals are ignored

    def __init__(self, layer: nn.Linear, delta: float = 1.0) -> None:
        super().__init__()
        if layer.bias is not None or min(layer.weight.shape) < 1:
            raise InputError(
                f"a posterior over an output layer needs at least one output and one feature, and no bias; got {layer}."
            )
        if not delta > 0:
            raise InputError(f"delta must be a positive prior precision; got {delta}.")
        nn.init.zeros_(layer.weight)
        self.mean = layer.weight
        C, units = layer.weight.shape
        eye = torch.eye(units, dtype=self.mean.dtype, device=self.mean.device)
        self.scale = nn.Parameter(eye.div(delta**0.5).repeat(C, 1, 1))
        self.register_buffer("log_delta", self.mean.new_tensor(delta).log().detach())

    @property
    def delta(self) -> Float[Tensor, ""]:
        return self.get_buffer("log_delta").exp()

    def moments(self, phi: Float[Tensor, "B F"]) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B C"]]:
        """Return the mean and variance of every output."""
        spread = torch.matmul(phi, self.scale.tril().mT)  # [C, B, F]: L_c phi
        return phi @ self.mean.mT, spread.square().sum(-1).mT

    def kl(self) -> Float[Tensor, ""]:
        L = self.scale.tril()
        diagonal = L.diagonal(dim1=-2, dim2=-1)
        if not bool((diagonal != 0).all() and diagonal.isfinite().all()):
            raise RunError(
                "the covariance of the output weights is no longer positive definite: its Cholesky factor has a zero "
                "or non-finite entry on the diagonal. Lower the learning rate, or take posterior='natural', which "
                "keeps the precision above that of the prior."
            )
        squares = self._squares()
        n, log_delta = self.mean.numel(), self.get_buffer("log_delta")
        return (log_delta.exp() * squares - n * (1 + log_delta)) / 2 - diagonal.abs().log().sum()

    @torch.no_grad()
    def fit_prior_(self) -> None:
        """Set delta to the value that maximises the bound for this q."""
        self.get_buffer("log_delta").copy_((self.mean.numel() / self._squares()).log())

    def _squares(self) -> Tensor:
        return self.scale.tril().square().sum() + self.mean.square().sum()

    @torch.no_grad()
    def sample(self, rng: torch.Generator) -> Float[Tensor, "C F"]:
        z = torch.randn(self.mean.shape, generator=rng, device=rng.device).to(self.mean)
        return self.mean + (self.scale.tril().mT @ z[..., None])[..., 0]


CHUNK = 500  # rows of features at a time: bounds the memory of their weighted copies, one per output
NARROW = 1e-4  # standard deviation of the first q, in units of the prior's
MIN_VARIANCE = 1e-12  # smallest noise variance: a network that fits its targets exactly would make it zero
SMALLEST = 1 / 32  # smallest step tried: if it does not raise the bound, q is optimal up to rounding


class NaturalAscent(nn.Module):
    """Natural-gradient ascent of the bound in q; `posterior` and its prior follow the natural parameters.

    In its natural parameters, the precisions P_c and P_c mu_c, the gradient of the bound is the difference between
    their targets from the data and their values (Hoffman et al., 2013; Khan and Nielsen, 2018). With slope s and
    curvature k of the expected log-likelihood at the current q, and m the mean outputs, a step of size rho is

        P_c       <-  (1 - rho) P_c      + rho (delta I + sum_n k_nc phi_n phi_n^T)
        P_c mu_c  <-  (1 - rho) P_c mu_c + rho (          sum_n (s_nc + k_nc m_nc) phi_n).

    For Gaussian noise, rho = 1 is the exact posterior. No step can leave the cone of positive definite matrices. For
    classes rho = 1 is tried, and halved for as long as the bound would fall, compared at equal draws of the outputs.
    From the posterior at slightly different widths one or two steps suffice. Adam on (mu, L), as in the paper, needs
    hundreds: the features of a kernel machine are highly correlated, to which a natural gradient is indifferent.

    The paper starts at the prior. Under a wide one nearly all draws of the outputs are saturated and have no
    curvature. So q starts narrow, about zero outputs, where classes have most: its first step is a ridge regression.
    """

    world: World = ALONE
    """The processes that share the data of every step; each has all of them."""

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
        """Take natural-gradient steps until one gains less than `enough` per datum, and return the bound."""
        bound, targets, squares = self._targets(phi, y, seed)
        for _ in range(steps):
            before = {name: tensor.clone() for name, tensor in self.state_dict().items()}
            was, rho = bound, 1.0
            while True:
                self._move(targets, rho, squares / y.numel())
                bound, new_targets, new_squares = self._targets(phi, y, seed)
                if bound >= was or rho <= SMALLEST:
                    break
                self.load_state_dict(before)
                rho /= 2
            if bound < was:
                self.load_state_dict(before)
                return was
            targets, squares = new_targets, new_squares
            if bound - was < enough * len(phi):
                break
        return bound

    @torch.no_grad()
    def sites(
        self, phi: Float[Tensor, "N F"], y: Shaped[Tensor, "N ..."], seed: int
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C"]]:
        """Return each datum's share of the natural parameters: k_nc, and s_nc + k_nc m_nc."""
        m, v = self.posterior.moments(phi)
        rng = generator(seed, phi.device)
        expected = expected_log_prob(self.likelihood, m, v, y, rng, self.draws, self.mix)
        return expected.curvature, expected.slope + expected.curvature * m

    @torch.no_grad()
    def start(self, phi: Float[Tensor, "N F"], curvature: Tensor, target: Tensor) -> None:
        """Move q to the targets that `sites` of other features give for these, the prior held."""
        precision = (phi.mT * curvature.mT[:, None]) @ phi
        precision.diagonal(dim1=-2, dim2=-1).add_(self.posterior.delta)
        fit_prior, self.fit_prior = self.fit_prior, False
        self._move((precision, target.mT @ phi), 1.0, 1.0)
        self.fit_prior = fit_prior

    def _targets(self, phi: Tensor, y: Tensor, seed: int) -> tuple[float, tuple[Tensor, Tensor], float]:
        """Return the bound, the targets of the natural parameters, and the expected squared residual."""
        posterior, rng, total, squares = self.posterior, generator(seed, phi.device), 0.0, 0.0
        precision = torch.zeros_like(self.get_buffer("precision"))
        if self.world.rank == 0:
            precision.diagonal(dim1=-2, dim2=-1).add_(posterior.delta)
        linear = torch.zeros_like(self.get_buffer("linear"))
        for part, labels in zip(phi.split(CHUNK), y.split(CHUNK), strict=True):
            rng.part = own = self.world.part(len(part))
            if own is not None:
                part, labels = part[own.rows], labels[own.rows]
                if not own.weight:
                    continue
            m, v = posterior.moments(part)
            expected = expected_log_prob(self.likelihood, m, v, labels, rng, self.draws, self.mix)
            weighted = part.mT * expected.curvature.mT[:, None]  # [C, F, B]
            precision.baddbmm_(weighted, part.expand(len(weighted), -1, -1))
            linear.addmm_((expected.slope + expected.curvature * m).mT, part)
            total += float(expected.log_prob)
            if isinstance(self.likelihood, Gaussian):
                squares += float((labels - m).square().sum() + v.sum())
        self.world.sum_([precision, linear])
        total, squares = self.world.sums([total, squares])
        return total - float(posterior.kl()), (precision, linear), squares

    def _move(self, targets: tuple[Tensor, Tensor], rho: float, variance: float) -> None:
        posterior, precision, linear = self.posterior, self.get_buffer("precision"), self.get_buffer("linear")
        precision.lerp_(targets[0], rho)
        linear.lerp_(targets[1], rho)
        L = inverse_triangular(cholesky(precision))
        posterior.scale.copy_(L)
        posterior.mean.copy_((L.mT @ (L @ linear[..., None]))[..., 0])
        if self.fit_prior:
            posterior.fit_prior_()
            if isinstance(self.likelihood, Gaussian):
                self.likelihood.log_sigma2.fill_(math.log(max(variance, MIN_VARIANCE)))


JITTER = 1e-6  # added to the diagonal of a matrix that rounding has made indefinite, as a share of its mean
_SMALL = 64  # triangles up to this size are inverted by substitution, larger ones by their blocks


def cholesky(A: Float[Tensor, "C n n"]) -> Float[Tensor, "C n n"]:
    """Return Cholesky factors, with jitter where float32 has rounded a matrix to an indefinite one."""
    R, failed = torch.linalg.cholesky_ex(A)
    if failed.any():
        more = JITTER * A.diagonal(dim1=-2, dim2=-1).mean(-1) * (failed > 0)
        R, failed = torch.linalg.cholesky_ex(A.double() + torch.diag_embed(more[:, None].expand(A.shape[:2])))
    lost = failed.bool() | ~R.flatten(1).isfinite().all(1)
    if lost.any():
        raise RunError(
            f"the posterior precision of output {int(lost.nonzero()[0])} is not positive definite: features or labels "
            f"hold extreme values. Scale the inputs (pixels to [0, 1]), or lower the network's alpha."
        )
    return R.to(A)


def inverse_triangular(R: Float[Tensor, "C n n"]) -> Float[Tensor, "C n n"]:
    """Return the inverses of lower triangular matrices, block by block: nearly all of it is matrix products."""
    n = R.shape[-1]
    if n <= _SMALL:
        eye = torch.eye(n, dtype=R.dtype, device=R.device).expand_as(R)
        return torch.linalg.solve_triangular(R, eye, upper=False)
    h = n // 2
    above, below = inverse_triangular(R[:, :h, :h]), inverse_triangular(R[:, h:, h:])
    out = torch.zeros_like(R)
    out[:, :h, :h], out[:, h:, h:] = above, below
    out[:, h:, :h] = -(below @ (R[:, h:, :h] @ above))
    return out


def ridge(phi: Float[Tensor, "N F"], y: Float[Tensor, "N C"], pull: Float[Tensor, " F"]) -> Float[Tensor, "C F"]:
    """Return argmin |y - phi W^T|^2 + sum_j pull_j |W_j|^2, in the smaller of the dimensions N and F."""
    N, F = phi.shape
    if F <= N:
        return torch.cholesky_solve(phi.mT @ y, cholesky((phi.mT @ phi + torch.diag(pull))[None])[0]).mT
    scaled = phi / pull
    K = scaled @ phi.mT + torch.eye(N).to(phi)
    return (scaled.mT @ torch.cholesky_solve(y, cholesky(K[None])[0])).mT


def logistic(
    phi: Float[Tensor, "N F"], y: Shaped[Tensor, " N"], pull: Float[Tensor, " F"], W: Float[Tensor, "C F"]
) -> Float[Tensor, "C F"]:
    """Return argmin -log p(y | phi W^T) + sum_j pull_j |W_j|^2 / 2 by L-BFGS from W.

    In coordinates W = V R^-1 with R^T R = phi^T phi / 4 + pull, an upper bound on the curvature: well conditioned.
    """
    R = cholesky((phi.mT @ phi / 4 + torch.diag(pull))[None])[0].mT
    V = (W @ R.mT).requires_grad_()
    Z = torch.linalg.solve_triangular(R, phi, upper=True, left=False)

    def weights() -> Tensor:
        return torch.linalg.solve_triangular(R.mT, V, upper=False, left=False)

    def loss() -> Tensor:
        with torch.enable_grad():
            nll = nn.functional.cross_entropy(Z @ V.mT, y, reduction="sum")
            value = nll + (pull * weights().square()).sum() / 2
            V.grad = torch.autograd.grad(value, V)[0].contiguous()  # L-BFGS takes a flat view of it
        return value.detach()

    options: dict[str, Any] = {"max_iter": 100, "tolerance_change": 1e-7, "tolerance_grad": 1e-4}
    torch.optim.LBFGS([V], line_search_fn="strong_wolfe", **options).step(loss)
    return weights().detach()
