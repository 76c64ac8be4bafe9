r"""Expectations of a log-likelihood under Gaussian outputs f ~ N(m, diag v), and what a natural gradient needs of them.

| | E log p(y given f) | slope = d/dm | curvature = -2 d/dv = -E d^2 log p / df^2 |
|---|---|---|---|
| Gaussian | closed form | (y - m) / sigma^2 | 1 / sigma^2 |
| categorical | mean over draws f = m + sqrt(v) z | E[e_y - p] | E[p (1 - p)] |

The curvature of the categorical comes from Price's theorem: never negative, whatever the draws, so that a step along
the natural gradient keeps every covariance positive definite.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.errors import InputError
from augury.evidence.likelihood import Likelihood
from augury.evidence.likelihoods import Categorical, Gaussian

DRAWS = 8
"""Draws of the outputs per input. The paper's one draw is of all weights together; these cost next to nothing."""


@dataclass(frozen=True)
class Expected:
    """What a batch says under q."""

    log_prob: Float[Tensor, ""]
    """E log p(y | f), summed over the batch; differentiable in m and v."""
    slope: Float[Tensor, "B J"]
    """Its derivative in m."""
    curvature: Float[Tensor, "B J"]
    """Minus twice its derivative in v; not negative."""


def expected_log_prob(
    likelihood: Likelihood,
    m: Float[Tensor, "B J"],
    v: Float[Tensor, "B J"],
    y: Shaped[Tensor, "B ..."],
    rng: torch.Generator,
    draws: int = DRAWS,
    mix: Float[Tensor, "C J"] | None = None,
) -> Expected:
    """Return E log p(y | f) for f ~ N(m, diag v), with its first derivatives."""
    likelihood.check(m if mix is None else m @ mix.mT, y)
    if isinstance(likelihood, Gaussian):
        precision = likelihood.scale("ggn").to(m)
        value = likelihood.log_prob(m, y) - precision * v.sum() / 2
        return Expected(value, (precision * (y - m)).detach(), precision.detach().expand_as(m))
    if not isinstance(likelihood, Categorical):
        raise InputError(f"the bound knows classes and Gaussian noise; got {type(likelihood).__name__}.")
    z = torch.randn(draws, *m.shape, generator=rng, device=rng.device).to(m)
    tiny = torch.finfo(v.dtype).tiny  # keeps the slope of the root finite for an input without features
    f = m + v.clamp(min=tiny).sqrt() * z
    log_p = (f if mix is None else f @ mix.mT).log_softmax(-1)
    value = log_p.gather(-1, y.expand(draws, -1)[..., None]).sum() / draws
    p = log_p.detach().exp()
    slope = F.one_hot(y, p.shape[-1]).to(m) - p.mean(0)
    if mix is None:
        return Expected(value, slope, (p * (1 - p)).mean(0))
    return Expected(value, slope @ mix, (p @ mix.square() - (p @ mix).square()).mean(0))
