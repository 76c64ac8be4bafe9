r"""Gradient flow on the logit invariance error alone: what Proposition 3.1 of paper D speaks about.

For one linear map f(x) = W x, with M = mean of (g x - x)(g x - x)^T over inputs and group,

    LI(W) = tr(W M W^T),   dW/dt = -2 W M,   W(t) = W(0) exp(-2 M t).

M is positive semi-definite, so exp(-2 M t) lengthens no vector: no singular value of W ever grows. Gradient descent
with step h is W <- W (I - 2 h M), and contracts likewise as long as h <= 1 / lambda_max(M).

With layers A above and B below, a layer of a deep linear network has dW/dt = -2 A^T A W B M B^T, and there sigma_max
may grow: two positive semi-definite factors around W do not make a contraction. What remains, for every layer of a
network that is linear or ReLU and has no biases, is d |W|_F^2 / dt = -4 LI <= 0, since LI is homogeneous of degree 2
in each layer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, grad

from augury.core.errors import choose
from augury.core.rng import generator
from augury.evidence.invariance import logit_error
from augury.transforms.finite_groups import FiniteGroup

Weights = dict[str, Tensor]
Error = Callable[[Weights], Tensor]


def displacement_moment(x: Float[Tensor, "N ..."], group: FiniteGroup) -> Float[Tensor, "D D"]:
    """Return M, the second moment of how far the group moves the inputs."""
    moved = (group.orbit(x)[:, 1:] - x[:, None]).flatten(0, 1).flatten(1)
    return moved.T @ moved / len(moved)


def linear_solution(
    W: Float[Tensor, "C D"], M: Float[Tensor, "D D"], times: Sequence[float]
) -> Float[Tensor, "T C D"]:
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
    """Where the weights are after some steps."""

    step: int
    """Steps taken."""
    t: float
    """Time of the flow; for Adam, the number of steps."""
    theta: Weights
    """The weights."""
    LI: float
    """Their error."""


def follow(method: str, LI: Error, theta: Weights, steps: int, rate: float) -> Iterator[Moment]:
    """Go down LI, and yield the weights before the first step and after every one."""
    yield from METHODS[choose("method", method, METHODS)](LI, theta, steps, rate)


def _flow(LI: Error, theta: Weights, steps: int, rate: float) -> Iterator[Moment]:
    h = rate / sharpness(LI, theta)
    for step in range(steps + 1):
        yield Moment(step, step * h, theta, float(LI(theta)))
        theta = runge_kutta(grad(LI), theta, h)


def _descent(LI: Error, theta: Weights, steps: int, rate: float) -> Iterator[Moment]:
    h = rate / sharpness(LI, theta)
    for step in range(steps + 1):
        yield Moment(step, step * h, theta, float(LI(theta)))
        theta = _down(theta, grad(LI)(theta), h)


def _adam(LI: Error, theta: Weights, steps: int, rate: float) -> Iterator[Moment]:
    leaves = {name: w.clone().requires_grad_() for name, w in theta.items()}
    optimizer = torch.optim.Adam(leaves.values(), lr=rate)
    for step in range(steps + 1):
        error = LI(leaves)
        yield Moment(
            step, float(step), {name: w.detach().clone() for name, w in leaves.items()}, error.item()
        )
        optimizer.zero_grad()
        error.backward()
        optimizer.step()


METHODS: dict[str, Callable[[Error, Weights, int, float], Iterator[Moment]]] = {
    "flow": _flow,
    "descent": _descent,
    "adam": _adam,
}
"""Ways down: the flow itself (an ODE), gradient descent with small steps, Adam."""
