"""How sure are we of a width? From the curvature of the evidence in eta.

Near its maximum the evidence is a Gaussian in eta whose precision is -d^2 log p(D) / d eta_k^2, taken by central
differences of the gradient at equal noise. A width that stands at its upper bound (half a turn) has no upper end to
find. Where this does not decide, because the evidence is flat or bent upwards just there, it is followed further (see
`profile`): a plateau from 150 to 180 degrees is sure of being far from 0.

The verdict asks whether the 95 % interval lies on one side of `SLIGHT`, the width below which a transformation
hardly moves anything: 0.1 is 6 degrees, a tenth of the scale, 1.4 pixels of 28.

Where a parabola does not describe the evidence: follow it along one width, away from where the width stands.

    log p(eta_k) - log p(here)  =  integral of d log p / d eta_k,        all else held, at equal noise

A walk in both directions, on a ladder of widths that is fine near 0, until the evidence has fallen by `DROP`: what is
left is the interval in which it is within `DROP` of its best, as 95 % of a Gaussian are. Between two knots the gradient
is taken to be straight; where an end of the interval lies, another knot is put between them.

Does the evidence beat a guess? Where it does not, it knows nothing of widths either.

    classes   log p(guess) = sum_c n_c log(n_c / N):  their frequencies, whatever the input
    numbers   a Gaussian about the mean of the targets, with their variance

With few or hard data a network that is evaluated by its evidence can end below that: the more it has learned, the more
its weights cost. Widths then go wherever weights become cheaper, which is no invariance of the data: on 1,000
photographs a shift ran to 13 of 32 pixels, on 1,000 coloured digits a scale to 5. Both had less evidence than a guess,
and no other run of `augury bench policies` and of paper A's recovery had.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.units import WidthSpec
from augury.evidence.ascent import AnyEvidence, some_of
from augury.evidence.elbo import Elbo
from augury.records.results import Width
from augury.training.batches import Batches
from augury.training.learner import Findings, widths_of

SLIGHT = 0.1
"""eta below which a width counts as none."""
STEP = 0.05
"""Step of the central differences, in eta: wide enough to rise over the noise of float32."""
LARGEST = 500
"""Data used for the curvature: it is scaled up, and only its size matters."""
Z = 1.96


def judged(evidence: AnyEvidence | Elbo, batches: Batches, rng: torch.Generator) -> dict[str, Width]:
    """Return every width with its interval and verdict."""
    transform = evidence.model.transform
    if sum(p.numel() for p in evidence.eta) != len(transform.specs):
        return widths_of(
            transform, "undecided"
        )  # a width made of several parameters has no curvature of its own
    sample = some_of(batches(rng), LARGEST)
    seed = int(torch.randint(2**61, (), generator=rng, device=rng.device))
    entries = [(p, k) for p in evidence.eta for k in range(p.numel())]
    slopes = [slope_of(evidence, sample, seed, p, k) for p, k in entries]
    rows = zip(transform.specs, transform.eta.detach().abs().tolist(), slopes, strict=True)
    return {spec.name: _judged(spec, eta, slope) for spec, eta, slope in rows}


Slope = Callable[[float], float]
"""The derivative of the evidence at a width."""


def _judged(spec: WidthSpec, eta: float, slope: Slope) -> Width:
    width = width_of(spec, eta, *gaussian(eta, precision(slope, eta), spec.upper))
    if width.verdict != "undecided":
        return width
    return width_of(spec, eta, *plausible(slope, eta, spec.upper))


def slope_of(
    evidence: AnyEvidence | Elbo, sample: tuple[Tensor, Tensor], seed: int, parameter: Tensor, k: int
) -> Slope:
    """Return d log p / d eta_k as a function of that width, all else and the noise held."""
    which = next(n for n, p in enumerate(evidence.eta) if p is parameter)

    def slope(eta: float) -> float:
        held = parameter.detach().clone()
        with torch.no_grad():
            parameter[k] = eta
        gradient = float(evidence.gradient(*sample, seed)[which][k])
        with torch.no_grad():
            parameter.copy_(held)
        return gradient

    return slope


def precision(slope: Slope, eta: float) -> float:
    """Return -d^2 log p(D) / d eta^2."""
    return -(slope(eta + STEP) - slope(eta - STEP)) / (2 * STEP)


def gaussian(eta: float, precision: float, upper: float) -> tuple[float, float]:
    """Return the 95 % interval of a Gaussian, within the sensible range."""
    spread = Z / math.sqrt(precision) if precision > 0 else math.inf
    return max(0.0, eta - spread), min(upper, eta + spread)


def width_of(spec: WidthSpec, eta: float, low: float, high: float) -> Width:
    """Return one width with its interval and verdict."""
    verdict = "invariant" if low >= SLIGHT else "not invariant" if high <= SLIGHT else "undecided"
    to_person = spec.unit.to_person
    end = to_person(high) if math.isfinite(high) else None
    return Width(to_person(eta), spec.unit.symbol, to_person(low), end, verdict)


DROP = 1.92
"""Nats below the best: 1.96^2 / 2."""
RUNGS = (0.0, 0.1, 0.4, 1.2, 2.4)
"""Widths to look at, in eta."""
HALVINGS = 2
"""Knots that are put around each end."""
FINE = 50
"""Points between two knots."""


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


NOTE = (
    "The trained network has {value:.2f} nats of evidence per input, a guess that never looks at them {guess:.2f}: so "
    "few data, or data so hard for this network, say nothing of invariances. No width is decided. Take more data, a "
    "network that learns them better, or fewer generators; `augury doctor` tells beforehand whether it can work."
)
"""Said where the evidence does not beat a guess."""


def guess(y: Shaped[Tensor, "N ..."]) -> float:
    """Return the log probability of targets for one who knows how they are distributed, and not the inputs."""
    N = len(y)
    if not y.is_floating_point():
        n = torch.unique(y, return_counts=True)[1].double()
        return float((n * (n / N).log()).sum())
    variance = y.double().flatten(1).var(0, correction=0).clamp_min(torch.finfo(y.dtype).tiny)
    return float(-N / 2 * ((2 * math.pi * variance).log() + 1).sum())


def sober(found: Findings, y: Shaped[Tensor, "N ..."]) -> Findings:
    """Return findings as they are, or without any verdict where their evidence does not beat a guess."""
    value, floor = found.log_evidence, guess(y)
    if value is None or value > floor:
        return found
    note = NOTE.format(value=value / len(y), guess=floor / len(y))
    widths = {name: replace(width, verdict="undecided") for name, width in found.widths.items()}
    return replace(found, widths=widths, notes=(*found.notes, note))
