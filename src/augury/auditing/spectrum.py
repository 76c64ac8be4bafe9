r"""Largest singular values of weights and of the input-output Jacobian, by matrix-free power iteration.

    u <- J v / |J v|,   v <- J^T u / |J^T u|,   sigma = |J^T u|

J^T u is a backward pass. J v is a derivative of that backward pass: u -> J^T u is linear, and its own transpose is
J. Both graphs are built once and used for every iteration; all inputs of a batch iterate together.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.auditing.measures import Logits
from augury.core.rng import generator

Linear = Callable[[Tensor], Tensor]  # a linear map of every row of a batch


def largest_singular_values(
    J: Linear, JT: Linear, u: Float[Tensor, "B ..."], iterations: int = 300, tolerance: float = 1e-5
) -> Float[Tensor, " B"]:
    """Return the largest singular value of a linear map J for each row of a batch, from a start u."""
    sigma = u.new_zeros(len(u))
    for _ in range(iterations):
        v = JT(_unit(u))
        before, sigma = sigma, _norm(v)
        if bool(((sigma - before).abs() <= tolerance * sigma).all()):
            break
        u = J(_unit(v))
    return sigma


def _norm(v: Tensor) -> Tensor:
    return torch.linalg.vector_norm(v.flatten(1), dim=1)


def _unit(v: Tensor) -> Tensor:
    norm = _norm(v).clamp(min=torch.finfo(v.dtype).tiny)
    return v / norm.reshape(-1, *[1] * (v.ndim - 1))


def jacobian_sigmas(
    model: Logits, x: Float[Tensor, "B ..."], iterations: int = 300, tolerance: float = 1e-5
) -> Float[Tensor, " B"]:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        f = model(x)
        if not f.requires_grad:
            return x.new_zeros(len(x))
        w = torch.zeros_like(f, requires_grad=True)
        (pulled,) = torch.autograd.grad(f, x, w, create_graph=True, allow_unused=True)
    if pulled is None or not pulled.requires_grad:
        return x.new_zeros(len(x))

    def J(v: Tensor) -> Tensor:
        return torch.autograd.grad(pulled, w, v, retain_graph=True)[0]

    def JT(u: Tensor) -> Tensor:
        return torch.autograd.grad(f, x, u, retain_graph=True)[0]

    start = torch.randn(f.shape, generator=generator(0)).to(f)
    return largest_singular_values(J, JT, start, iterations, tolerance).detach()


def weight_sigmas(module: nn.Module) -> dict[str, float]:

    def sigma(W: Tensor) -> float:
        start = torch.randn(1, W.shape[0], generator=generator(0)).to(W)
        return float(largest_singular_values(lambda v: v @ W.T, lambda u: u @ W, start))

    return {name: sigma(p.detach().flatten(1)) for name, p in module.named_parameters() if p.ndim > 1}
