"""Where a parabola does not describe the evidence: follow it along one width, away from where the width stands.

    log p(eta_k) - log p(here)  =  integral of d log p / d eta_k,        all else held, at equal noise

A walk in both directions, on a ladder of widths that is fine near 0, until the evidence has fallen by `DROP`: what is
left is the interval in which it is within `DROP` of its best, as 95 % of a Gaussian are. Between two rungs the gradient
is taken to be straight.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

DROP = 1.92
"""Nats below the best: 1.96^2 / 2."""
RUNGS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.2, 1.6, 2.4)
"""Widths to look at, in eta."""
FINE = 50
"""Points between two rungs."""

Slope = Callable[[float], float]
"""The derivative of the evidence at a width."""


def plausible(slope: Slope, here: float, upper: float) -> tuple[float, float]:
    """Return between which widths the evidence is within `DROP` of its best.

    Parameters
    ----------
    slope
        The derivative of the evidence in this width.
    here
        Where it stands, not negative.
    upper
        The largest width that means anything new; may be infinite.

    Returns
    -------
    tuple
        Low and high, around `here`; high is infinite where the evidence falls nowhere and there is no upper bound.
    """
    top = upper if math.isfinite(upper) else max(RUNGS[-1], 2 * here)
    start = slope(here)
    above = walk(slope, start, here, [v for v in sorted({*RUNGS, top}) if here < v <= top])
    below = walk(slope, start, here, [v for v in reversed(RUNGS) if v < here])
    limit = max(float(above[1].max()), float(below[1].max())) - DROP
    low, high = (_end(points, log_p, limit, here) for points, log_p in (below, above))
    return low, math.inf if high == top < upper else high


def walk(
    slope: Slope, start: float, here: float, rungs: Sequence[float]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Follow the evidence from rung to rung until it has fallen by `DROP`.

    Parameters
    ----------
    slope
        The derivative of the evidence.
    start
        Its value at `here`.
    here
        Where the walk begins.
    rungs
        Where it leads, nearest first.

    Returns
    -------
    tuple
        Widths, and the evidence there relative to the beginning.
    """
    v, log_p = [torch.tensor([here], dtype=torch.float64)], [torch.zeros(1, dtype=torch.float64)]
    left, best = start, 0.0
    for rung in rungs:
        begin, right = float(v[-1][-1]), slope(rung)
        t = torch.linspace(0, 1, FINE + 1, dtype=torch.float64)[1:]
        rise = (rung - begin) * (left * t + (right - left) * t.square() / 2)
        v.append(begin + (rung - begin) * t)
        log_p.append(log_p[-1][-1] + rise)
        left, best = right, max(best, float(log_p[-1].max()))
        if float(log_p[-1][-1]) < best - DROP:
            break
    return torch.cat(v), torch.cat(log_p)


def _end(points: Tensor, log_p: Tensor, limit: float, here: float) -> float:
    inside = points[log_p >= limit]
    return float(inside[-1]) if len(inside) else here
