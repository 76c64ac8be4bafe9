"""How sure are we of a width? From the curvature of the evidence in eta.

Near its maximum the evidence is a Gaussian in eta whose precision is -d^2 log p(D) / d eta_k^2, taken by central
differences of the gradient at equal noise. A width that stands at its upper bound (half a turn) has no upper end to
find. Where this does not decide, because the evidence is flat or bent upwards just there, it is followed further (see
`profile`): a plateau from 150 to 180 degrees is sure of being far from 0.

The verdict asks whether the 95 % interval lies on one side of `SLIGHT`, the width below which a transformation
hardly moves anything: 0.1 is 6 degrees, a tenth of the scale, 1.4 pixels of 28.
"""

import math

import torch
from torch import Tensor

from augury.core.units import WidthSpec
from augury.evidence.ascent import some_of
from augury.evidence.elbo import Elbo
from augury.methods.evidence_settings import AnyEvidence
from augury.methods.profile import Slope, plausible
from augury.records import Width
from augury.training.batches import Batches
from augury.training.learner import widths_of

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
