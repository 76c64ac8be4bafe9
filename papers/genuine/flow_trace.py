"""Watch the weights of a network go down LI: singular values, lengths and the Jacobian, in float64."""

from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from augury.core.errors import choose
from augury.core.rng import generator
from augury.models.layers import bare, seeded
from augury.models.networks import build
from augury.transforms.finite_groups import FiniteGroup
from papers.genuine.flow import Moment, Weights, displacement_moment, error_of, follow, linear_solution

NETWORKS = ("linear", "deep_linear", "mlp5", "pair")
"""One linear map, where Proposition 3.1 is proven; five of them, 128 units wide; paper D's network; `pair`."""

POINTS = 50
"""How often, at most, the weights are looked at."""


def network(name: str, D: int, C: int, seed: int) -> nn.Module:
    """Return an untrained network in float64."""
    rng = generator(seed)
    if choose("network", name, NETWORKS) == "mlp5":
        return build(name, (D,), C, rng).double()
    if name == "pair":
        return pair()
    sizes = [D, C] if name == "linear" else [D, 128, 128, 128, 128, C]
    layers = [seeded(nn.Linear, n_in, n_out, rng=rng, bias=False) for n_in, n_out in pairwise(sizes)]
    return nn.Sequential(nn.Flatten(), *layers).double()


def pair() -> nn.Module:
    """Return a network of two linear layers whose sigma_max the gradient flow raises.

    On images of two pixels under their exchange, n = (1, -1) spans all displacements. With W_1 = diag(1, 0.9) and
    W_2 = (1, 2), W_2 W_1 n = -0.8, and the flow moves W_1 along +W_2^T n^T: its first entry grows.
    """
    first, second = bare(nn.Linear, 2, 2, bias=False), bare(nn.Linear, 2, 1, bias=False)
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.9]]))
        second.weight.copy_(torch.tensor([[1.0, 2.0]]))
    return nn.Sequential(nn.Flatten(), first, second).double()


def watch(
    name: str,
    method: str,
    x: Float[Tensor, "N ..."],
    group: FiniteGroup,
    C: int,
    seed: int,
    steps: int,
    rate: float,
) -> dict[str, Any]:
    """Go down LI and note what happens to the weights."""
    x = x.double()
    net = network(name, x[0].numel(), C, seed)
    theta = {key: p.detach().clone() for key, p in net.named_parameters()}
    moments, rises, before = [], 0, float("inf")
    every = max(1, steps // POINTS)
    for moment in follow(method, error_of(net, x, group), theta, steps, rate):
        rises += before < moment.LI
        before = moment.LI
        if moment.step % every == 0:
            moments.append(moment)
    noted = _noted(net, x, moments)
    if name == "linear" and method == "flow":
        noted["from_closed_form"] = _distance(displacement_moment(x, group), moments)
    return {**noted, "rises": rises}


def _noted(net: nn.Module, x: Tensor, moments: list[Moment]) -> dict[str, Any]:
    matrices = [key for key, w in moments[0].theta.items() if w.ndim == 2]
    return {
        "t": [m.t for m in moments],
        "LI": [m.LI for m in moments],
        "jacobian": [_jacobian(net, m.theta, x[:16]) for m in moments],
        "sigma": {k: [float(torch.linalg.matrix_norm(m.theta[k], 2)) for m in moments] for k in matrices},
        "length": {k: [float(torch.linalg.matrix_norm(m.theta[k])) for m in moments] for k in matrices},
    }


def _jacobian(net: nn.Module, theta: Weights, x: Tensor) -> float:
    """Return sigma_max(J), mean over a few inputs."""
    J = vmap(jacrev(lambda one: functional_call(net, theta, (one[None],))[0]))(x)
    return float(torch.linalg.matrix_norm(J.flatten(2), 2).mean())


def _distance(M: Tensor, moments: list[Moment]) -> float:
    """Return how far, at most, the integrated flow was from W(0) exp(-2 M t)."""
    (key,) = moments[0].theta
    W = moments[0].theta[key]
    there = torch.stack([m.theta[key] for m in moments])
    far = there - linear_solution(W, M, [m.t for m in moments])
    return float(far.flatten(1).norm(dim=1).max() / W.norm())
