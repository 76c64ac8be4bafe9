"""Where a parabola does not describe the evidence: follow it along one width, away from where the width stands.

    log p(eta_k) - log p(here)  =  integral of d log p / d eta_k,        all else held, at equal noise

A walk in both directions, on a ladder of widths that is fine near 0, until the evidence has fallen by `DROP`: what is
left is the interval in which it is within `DROP` of its best, as 95 % of a Gaussian are. Between two knots the gradient
is taken to be straight; where an end of the interval lies, another knot is put between them.
"""

import math
from collections.abc import Callable, Iterable
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

DROP = 1.92
"""Nats below the best: 1.96^2 / 2."""
RUNGS = (0.0, 0.1, 0.4, 1.2, 2.4)
"""Widths to look at, in eta."""
HALVINGS = 2
"""Knots that are put around each end."""
FINE = 50
"""Points between two knots."""

Slope = Callable[[float], float]
"""The derivative of the evidence at a width."""


def plausible(slope: Slope, here: float, upper: float) -> tuple[float, float]:
    """Return between which widths the evidence is within `DROP` of its best."""
    top = upper if math.isfinite(upper) else max(RUNGS[-1], 2 * here)
    knots = {here: slope(here)}
    walk(slope, knots, (v for v in sorted({*RUNGS, top}) if here < v <= top))
    walk(slope, knots, (v for v in reversed(RUNGS) if v < here))
    for _ in range(HALVINGS):
        for end in ends(knots, here):
            below, above = max(v for v in knots if v <= end), min(v for v in knots if v >= end)
            if below < above:
                middle = (below + above) / 2
                knots[middle] = slope(middle)
    low, high = ends(knots, here)
    return low, math.inf if high == top < upper else high


def walk(slope: Slope, knots: dict[float, float], rungs: Iterable[float]) -> None:
    """Follow the evidence from rung to rung until it has fallen by `DROP`."""
    for rung in rungs:
        knots[rung] = slope(rung)
        v, log_p = evidence(knots)
        if float(log_p[v == rung]) < float(log_p.max()) - DROP:
            break


def evidence(knots: dict[float, float]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Return widths, and the evidence there relative to the first."""
    at = sorted(knots)
    v, log_p = [torch.tensor(at[:1], dtype=torch.float64)], [torch.zeros(1, dtype=torch.float64)]
    t = torch.linspace(0, 1, FINE + 1, dtype=torch.float64)[1:]
    for a, b in pairwise(at):
        rise = (b - a) * (knots[a] * t + (knots[b] - knots[a]) * t.square() / 2)
        v.append(torch.cat([a + (b - a) * t[:-1], torch.tensor([b], dtype=torch.float64)]))
        log_p.append(log_p[-1][-1] + rise)
    return torch.cat(v), torch.cat(log_p)


def ends(knots: dict[float, float], here: float) -> tuple[float, float]:
    """Return the widths farthest apart at which the evidence is within `DROP` of its best."""
    v, log_p = evidence(knots)
    inside = v[log_p >= log_p.max() - DROP]
    return min(float(inside[0]), here), max(float(inside[-1]), here)
