"""The linearised Laplace posterior predictive of a small orbit-averaged network (paper A, Figure 1).

    p(y | x) = E softmax(f),   f ~ N(f_hat(x), J(x) H^-1 J(x)^T),   H = sum_n J_n^T Lambda_n J_n + delta

with the full H: only for networks of a few hundred weights.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from augury.models.orbit import OrbitAverage

DRAWS = 256
"""Samples of f behind the expectation."""
CHUNK = 64
"""Inputs whose Jacobians are held at a time."""

Parameters = dict[str, Tensor]


def predictive(
    model: nn.Module, x: Float[Tensor, "N 2"], grid: Float[Tensor, "M 2"], delta: float, S: int, rng: torch.Generator
) -> Float[Tensor, "M C"]:
    """Return the class probabilities on a grid of points."""
    f, J = _outputs(model, x, S, rng)
    p = f.softmax(1)
    Lambda = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    H = torch.einsum("ncp,ncd,ndq->pq", J, Lambda, J) + delta * torch.eye(J.shape[-1], dtype=J.dtype)
    mean, J = _outputs(model, grid, S, rng)
    whitened = torch.linalg.solve_triangular(torch.linalg.cholesky(H), J.flatten(0, 1).T, upper=False).T.unflatten(
        0, mean.shape
    )
    covariance = whitened @ whitened.mT
    root = torch.linalg.cholesky(covariance + 1e-6 * torch.eye(mean.shape[1], dtype=mean.dtype))
    # The same draws at every point: the field is smooth, and each point's expectation is what it would be anyway.
    noise = torch.randn(DRAWS, mean.shape[1], generator=rng, dtype=mean.dtype)
    return (mean + torch.einsum("mcd,kd->kmc", root, noise)).softmax(-1).mean(0)


def _outputs(
    model: nn.Module, x: Tensor, S: int, rng: torch.Generator
) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C P"]]:
    """Return f_hat and its Jacobian in the weights, in float64."""
    net, views = model, x[:, None]
    if isinstance(model, OrbitAverage):
        eps = model.transform.noise(1, S, rng).to(x)
        net, views = model.net, model.transform.act(x, eps.expand(len(x), -1, -1)).detach()
    parameters = {name: p.detach().double() for name, p in net.named_parameters()}

    def f_hat(weights: Parameters, orbit: Tensor) -> tuple[Tensor, Tensor]:
        f = functional_call(net, weights, (orbit,)).mean(0)
        return f, f

    jacobians = vmap(jacrev(f_hat, has_aux=True), in_dims=(None, 0), chunk_size=CHUNK)
    jacobian, f = jacobians(parameters, views.double())
    return f, torch.cat([J.flatten(2) for J in jacobian.values()], dim=2)
