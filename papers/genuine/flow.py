r"""Gradient flow on the logit invariance error alone: what Proposition 3.1 of paper D speaks about.

For one linear map f(x) = W x, with M = mean of (g x - x)(g x - x)^T over inputs and group,

    LI(W) = tr(W M W^T),   dW/dt = -2 W M,   W(t) = W(0) exp(-2 M t).

M is positive semi-definite, so exp(-2 M t) lengthens no vector: no singular value of W ever grows. Gradient descent
with step h is W <- W (I - 2 h M), and contracts likewise as long as h <= 1 / lambda_max(M).

With layers A above and B below, a layer of a deep linear network has dW/dt = -2 A^T A W B M B^T, and there sigma_max
may grow: two positive semi-definite factors around W do not make a contraction. What remains, for every layer of a
network that is linear or ReLU and has no biases, is d |W|_F^2 / dt = -4 LI <= 0, since LI is homogeneous of degree 2
in each layer. `trace` measures singular values, lengths and the Jacobian on the way, in float64.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, grad, jacrev, vmap

from augury.core.errors import choose
from augury.core.rng import generator
from augury.evidence.invariance import logit_error
from augury.models.layers import bare, seeded
from augury.models.networks import build
from augury.transforms.finite_groups import FiniteGroup

Weights = dict[str, Tensor]
Error = Callable[[Weights], Tensor]


def displacement_moment(x: Float[Tensor, "N ..."], group: FiniteGroup) -> Float[Tensor, "D D"]:
    """Return M, the second moment of how far the group moves the inputs."""
    moved = (group.orbit(x)[:, 1:] - x[:, None]).flatten(0, 1).flatten(1)
    return moved.T @ moved / len(moved)


def linear_solution(W: Float[Tensor, "C D"], M: Float[Tensor, "D D"], times: Sequence[float]) -> Float[Tensor, "T C D"]:
    """Return where the gradient flow has brought a linear map."""
    values, vectors = torch.linalg.eigh(M)
    return torch.stack([(W @ vectors * torch.exp(-2 * t * values)) @ vectors.T for t in times])


def error_of(net: nn.Module, x: Float[Tensor, "N ..."], group: FiniteGroup) -> Error:
    """Return LI as a function of the weights."""
    N, views = len(x), torch.cat([x, group.orbit(x)[:, 1:].flatten(0, 1)])

    def LI(theta: Weights) -> Tensor:
        f = functional_call(net, theta, (views,))
        return logit_error(f[:N], f[N:].unflatten(0, (N, -1))).mean()

    return LI


def sharpness(LI: Error, theta: Weights, iterations: int = 30) -> float:
    """Return the largest curvature of LI by power iteration: it bounds the steps of an explicit method."""
    v = {name: torch.randn(w.shape, generator=generator(0)).to(w) for name, w in theta.items()}

    def along(theta: Weights, v: Weights) -> Tensor:
        slope = grad(LI)(theta)
        return torch.stack([(slope[name] * w).sum() for name, w in v.items()]).sum()

    for _ in range(iterations):
        length = _length(v)
        v = grad(along)(theta, {name: w / length for name, w in v.items()})
    return _length(v)


def _length(v: Weights) -> float:
    return float(torch.stack([w.square().sum() for w in v.values()]).sum().sqrt())


def _down(theta: Weights, slope: Weights, h: float) -> Weights:
    return {name: w - h * slope[name] for name, w in theta.items()}


def runge_kutta(slope: Callable[[Weights], Weights], theta: Weights, h: float) -> Weights:
    """Follow d theta / dt = -slope for a time h, by the classical method of order four."""
    a = slope(theta)
    b = slope(_down(theta, a, h / 2))
    c = slope(_down(theta, b, h / 2))
    d = slope(_down(theta, c, h))
    mean = {name: (a[name] + 2 * b[name] + 2 * c[name] + d[name]) / 6 for name in theta}
    return _down(theta, mean, h)


@dataclass(frozen=True, eq=False)
class Moment:
    """The weights after some steps, and their error; t is the time of the flow (for Adam, the number of steps)."""

    step: int
    t: float
    theta: Weights
    LI: float


def follow(method: str, LI: Error, theta: Weights, steps: int, rate: float) -> Iterator[Moment]:
    """Go down LI, and yield the weights before the first step and after every one."""
    yield from METHODS[choose("method", method, METHODS)](LI, theta, steps, rate)


def _flow(LI: Error, theta: Weights, steps: int, rate: float) -> Iterator[Moment]:
    return _steps(lambda theta, h: runge_kutta(grad(LI), theta, h), LI, theta, steps, rate)


def _descent(LI: Error, theta: Weights, steps: int, rate: float) -> Iterator[Moment]:
    return _steps(lambda theta, h: _down(theta, grad(LI)(theta), h), LI, theta, steps, rate)


def _steps(
    move: Callable[[Weights, float], Weights], LI: Error, theta: Weights, steps: int, rate: float
) -> Iterator[Moment]:
    h = rate / sharpness(LI, theta)
    for step in range(steps + 1):
        yield Moment(step, step * h, theta, float(LI(theta)))
        theta = move(theta, h)


def _adam(LI: Error, theta: Weights, steps: int, rate: float) -> Iterator[Moment]:
    leaves = {name: w.clone().requires_grad_() for name, w in theta.items()}
    optimizer = torch.optim.Adam(leaves.values(), lr=rate)
    for step in range(steps + 1):
        error = LI(leaves)
        yield Moment(step, float(step), {name: w.detach().clone() for name, w in leaves.items()}, error.item())
        optimizer.zero_grad()
        error.backward()
        optimizer.step()


METHODS: dict[str, Callable[[Error, Weights, int, float], Iterator[Moment]]] = {
    "flow": _flow,
    "descent": _descent,
    "adam": _adam,
}
"""Ways down: the flow itself (an ODE), gradient descent with small steps, Adam."""

NETWORKS = ("linear", "deep_linear", "mlp5", "pair")
"""One linear map, where Proposition 3.1 is proven; five of them, 128 units wide; paper D's network; `pair`."""

POINTS = 50
"""At how many steps, at most, the weights are measured."""


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


def trace(
    name: str, method: str, x: Float[Tensor, "N ..."], group: FiniteGroup, C: int, seed: int, steps: int, rate: float
) -> dict[str, Any]:
    """Go down LI and measure the weights."""
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
    measured = _measured(net, x, moments)
    if name == "linear" and method == "flow":
        measured["from_closed_form"] = _distance(displacement_moment(x, group), moments)
    return {**measured, "rises": rises}


def _measured(net: nn.Module, x: Tensor, moments: list[Moment]) -> dict[str, Any]:
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
