"""How sure are we of a width? From the curvature of the evidence in eta.

Near its maximum the evidence is a Gaussian in eta whose precision is -d^2 log p(D) / d eta_k^2, taken by central
differences of the gradient at equal noise. A width that stands at its upper bound (half a turn) has no upper end to
find; a curvature that is not negative says that the data do not fix the width, and the interval is the whole range.

The verdict asks whether the 95 % interval lies on one side of `SLIGHT`, the width below which a transformation
hardly moves anything: 0.1 is 6 degrees, a tenth of the scale, 1.4 pixels of 28.
"""

import math

import torch

from augury.core.units import WidthSpec
from augury.evidence.ascent import some_of
from augury.evidence.elbo import Elbo
from augury.methods.evidence_settings import AnyEvidence
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
    """Return every width with its interval and verdict.

    Parameters
    ----------
    evidence
        At the end of training.
    batches
        The training set.
    rng
        Where order and noise come from.

    Returns
    -------
    dict
        Widths by name.
    """
    transform = evidence.model.transform
    if sum(p.numel() for p in evidence.eta) != len(transform.specs):
        return widths_of(
            transform, "undecided"
        )  # a width made of several parameters has no curvature of its own
    precision = eta_precision(evidence, batches, rng)
    eta = transform.eta.detach().abs().tolist()
    rows = zip(transform.specs, eta, precision, strict=True)
    return {spec.name: width_of(spec, value, p) for spec, value, p in rows}


def eta_precision(evidence: AnyEvidence | Elbo, batches: Batches, rng: torch.Generator) -> list[float]:
    """Return -d^2 log p(D) / d eta_k^2 for every width.

    Parameters
    ----------
    evidence
        At the end of training.
    batches
        The training set.
    rng
        Where order and noise come from.

    Returns
    -------
    list
        One precision per width; negative or zero where the evidence is not peaked.
    """
    x, y = some_of(batches(rng), LARGEST)
    seed = int(torch.randint(2**61, (), generator=rng, device=rng.device))
    out = []
    entries = [(which, k) for which, p in enumerate(evidence.eta) for k in range(p.numel())]
    for which, index in entries:
        parameter, sides = evidence.eta[which], []
        for sign in (1.0, -1.0):
            with torch.no_grad():
                parameter[index] += sign * STEP
            sides.append(float(evidence.gradient(x, y, seed)[which][index]))
            with torch.no_grad():
                parameter[index] -= sign * STEP
        out.append(-(sides[0] - sides[1]) / (2 * STEP))
    return out


def width_of(spec: WidthSpec, eta: float, precision: float) -> Width:
    """Return one width with its interval and verdict.

    Parameters
    ----------
    spec
        Its name, unit and bound.
    eta
        Its value, not negative.
    precision
        What the evidence says of it.

    Returns
    -------
    Width
        As a person reads it.
    """
    spread = Z / math.sqrt(precision) if precision > 0 else math.inf
    low = max(0.0, eta - spread)
    high = min(spec.upper, eta + spread)
    verdict = "invariant" if low >= SLIGHT else "not invariant" if high <= SLIGHT else "undecided"
    to_person = spec.unit.to_person
    end = to_person(high) if math.isfinite(high) else None
    return Width(to_person(eta), spec.unit.symbol, to_person(low), end, verdict)
