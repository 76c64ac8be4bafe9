r"""A Gaussian posterior over the weights of a linear output layer (paper B, section 3.7 and appendix A).

    q(W_2) = prod_c N(w_c; mu_c, Sigma_c),   Sigma_c = L_c^T L_c,   L_c lower triangular,   p(w_c) = N(0, I / delta)

One full covariance block for each output. With L_c so, L_c^-1 is the Cholesky factor of the precision. For features
phi the outputs f = W_2 phi are Gaussian again (the local reparameterisation), each with

    mean mu_c . phi     and variance |L_c phi|^2,

    KL(q || p) = 1/2 sum_c [ delta (|L_c|_F^2 + |mu_c|^2) - F - F log delta - 2 sum_i log |L_c,ii| ],

which is least, in delta, at delta = C F / sum_c (|L_c|_F^2 + |mu_c|^2).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError, RunError


class OutputPosterior(nn.Module):
    """q(W_2), and the prior that it is measured against."""

    mean: nn.Parameter
    """Means [C, F]: the weight of the layer itself."""
    scale: nn.Parameter
    """Lower triangles L [C, F, F]; what stands above their diagonals is ignored."""

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
        """Precision of the prior."""
        return self.get_buffer("log_delta").exp()

    def moments(self, phi: Float[Tensor, "B F"]) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B C"]]:
        """Return mean and variance of every output."""
        spread = torch.matmul(phi, self.scale.tril().mT)  # [C, B, F]: L_c phi
        return phi @ self.mean.mT, spread.square().sum(-1).mT

    def kl(self) -> Float[Tensor, ""]:
        """Return KL(q || p)."""
        L = self.scale.tril()
        diagonal = L.diagonal(dim1=-2, dim2=-1)
        if not bool((diagonal != 0).all() and diagonal.isfinite().all()):
            raise RunError(
                "the covariance of the output weights is no longer positive definite: its Cholesky factor has a zero "
                "or non-finite entry on the diagonal. Lower the learning rate, or take posterior='natural', which "
                "keeps the precision above that of the prior."
            )
        squares = L.square().sum() + self.mean.square().sum()
        n, log_delta = self.mean.numel(), self.get_buffer("log_delta")
        return (log_delta.exp() * squares - n * (1 + log_delta)) / 2 - diagonal.abs().log().sum()

    @torch.no_grad()
    def fit_prior_(self) -> None:
        """Set delta to the value that makes the bound greatest for this q."""
        squares = self.scale.tril().square().sum() + self.mean.square().sum()
        self.get_buffer("log_delta").copy_((self.mean.numel() / squares).log())

    @torch.no_grad()
    def sample(self, rng: torch.Generator) -> Float[Tensor, "C F"]:
        """Draw output weights."""
        z = torch.randn(self.mean.shape, generator=rng, device=rng.device).to(self.mean)
        return self.mean + (self.scale.tril().mT @ z[..., None])[..., 0]
