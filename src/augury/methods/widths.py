r"""Which widths does the evidence support? A profile along each width, with the output layer refitted.

The 95 % interval is the hull of { eta_k : l(eta_k) >= max l - 1.92 }, l as in `evidence.refit`, the other widths held
at their values. No derivative in eta is needed: a width that cannot be negative has its end at 0. The scan goes on
until the evidence is `FAR` below its best, so that a better optimum beyond a valley is seen; an estimate outside the
interval moves to the best width, with the output layer refitted there and, if either is above `slight`, a note.

If layers below are held, l is that of a network trained for other widths, and wrong far from them. The scan then ends
at the first valley, the estimate moves by at most `NEAR`, and the interval contains where the training ended; a note
says so. log det H is that of all layers at once: Kronecker factors let it fall several times too fast as orbits widen
(docs/results/curvature.md), and digits planted with 90 degrees had a second mode at 180.

Differences of l have noise: from the views, measured by two independent halves of them; and, if l comes from n of N
data scaled up, from the sample, as log det H has from its own (measured by ten groups of it). If the difference
between a width and the best one has the variance s^2, the drop that leaves 95 % is, instead of z^2 / 2, the d with

    d = z^2 / 2 (1 + s^2 / 2d),

because noise with variance s^2 in the slope of a parabola moves its top by a share s^2 / 2d of its own variance. If
the layers below were held, l is the evidence of a model that is wrong away from where they were trained, and falls more
steeply than the data warrant. For a true model, differences of l have the variance 2d over data sets (the information
equality); the variance of the data's terms beyond that is added to s^2, as in a sandwich estimate:

    s^2 = noise of the views + N (N / n - 1) var(terms) + max(0, N var(terms) - 2d) + var(log det) / 10

Layers that are held also keep l's best near the width that they were trained at, which the last steps up the evidence
moved to and fro: the standard deviation of the width over them is added to both sides, in quadrature, and to where the
training ended, if that is outside.

The verdict asks whether an interval lies on one side of `slight`, the width below which a transformation hardly moves
anything (if layers below are held, "invariant" asks for `CLEAR` times that): of K widths one of 1 - 0.05 / K, so that
all verdicts hold together in 95 %. "Invariant" also asks that labels are kept by the network in the end
(`methods.kept`). A network that is switched off (delta to infinity) has the evidence of a guess at every width, so l
is never below that of a guess that never looks at the inputs; if the run's own evidence does not beat it, no width is
decided:

    classes   log p(guess) = sum_c n_c log(n_c / N):  their frequencies, whatever the input
    numbers   a Gaussian about the mean of the targets, with their variance
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import NormalDist
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.units import WidthSpec
from augury.data.rows import taken
from augury.evidence.ascent import AnyEvidence, Evidence, NtkEvidence
from augury.evidence.elbo import Elbo
from augury.evidence.likelihoods import guess
from augury.evidence.refit import ElboRefit, Knot, LaplaceRefit, NtkRefit, Refit
from augury.records.results import Width
from augury.training.batches import Batches
from augury.training.learner import Findings, untold, widths_of

SLIGHT = 0.1
"""eta below which a width counts as none by default: 6 degrees, a tenth of the scale, 1.4 pixels of 28."""
CLEAR = 1.5
"""Times `SLIGHT` that "invariant" asks for if the layers below are held: the interval knows nothing of networks trained
elsewhere. Of 20 runs on upright digits three ended at vertical shifts of 2.4 to 3.5 pixels, with lower ends up to 2.6;
networks trained without them have 33 to 51 nats more than with 3 pixels (seeds 790, 791 and 796, which chose it; one of
the three is still called invariant). With twice the circular shift of outlines was undecided in 3 of 3 runs."""
LEVEL = 1.96
"""Standard deviations to either side of a 95 % interval; z^2 / 2 are its nats below the best."""
FAR = 20.0
"""Nats below the best at which a scan turns back."""
SINGLE, SEVERAL = (12, 12), (5, 1)
"""Widths of a scan and further ones at its best and at the ends of the interval, at most; for one width, or several."""
NEAR = 0.5
"""Largest move of a width, as eta, if the layers below the output are held."""
FINE = 40
"""Points of the interpolation between two of them."""
Tell = Callable[[int, int], None]
"""Called with how much is done, and the total."""
REFITS: dict[type, Callable[..., Refit]] = {Elbo: ElboRefit, Evidence: LaplaceRefit, NtkEvidence: NtkRefit}
"""How the evidence of each kind is refitted."""


@dataclass(frozen=True)
class Profile:
    """The log evidence along one width."""

    knots: dict[float, Knot]
    """What was found, by width, as eta."""
    upper: float
    """The largest width that means anything new; may be infinite."""
    beyond: bool = True
    """Whether a scan goes on behind a valley."""
    sure: float = LEVEL
    """Standard deviations of the interval behind the verdict."""

    @property
    def best(self) -> float:
        """The best-supported of the knots."""
        return max(self.knots, key=lambda eta: self.knots[eta].log_p)

    def drop(self, eta: float, z: float = LEVEL) -> float:
        """Return how far below its best the evidence may be at a knot, given its noise there."""
        best, knot = self.knots[self.best], self.knots[eta]
        n = len(knot.noise)
        N = knot.N or n
        s2 = (N / n) ** 2 * float((knot.noise - best.noise).double().square().sum())
        if knot.terms is not None and best.terms is not None:
            spread = N * float((knot.terms - best.terms).double().var(correction=0))
            s2 += (N / n - 1) * spread + max(0.0, spread - 2 * (best.log_p - knot.log_p))
        if knot.by_group is not None and best.by_group is not None and (groups := len(best.by_group)) > 3:
            s2 += float((knot.by_group - best.by_group).var()) / groups * (groups - 1) / (groups - 3)  # as Student's
        return z**2 / 4 + math.sqrt(z**4 / 16 + z**2 * s2 / 4)

    def hopeless(self, eta: float) -> bool:
        """Return whether a scan may turn back at this knot."""
        allowed = max(FAR, 2 * self.drop(eta)) if self.beyond else self.drop(eta, self.sure)
        return self.knots[self.best].log_p - self.knots[eta].log_p > allowed

    def curve(self, z: float = LEVEL) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Return a fine grid of widths, the evidence there, and how much it may fall, given its noise."""
        x = torch.tensor(sorted(self.knots), dtype=torch.float64)
        y = torch.tensor([self.knots[float(eta)].log_p for eta in x], dtype=torch.float64)
        drop = torch.tensor([self.drop(float(eta), z) for eta in x], dtype=torch.float64)
        eta, log_p = cubic(x, y)
        right = torch.searchsorted(x, eta).clamp(1, len(x) - 1)
        t = (eta - x[right - 1]) / (x[right] - x[right - 1])
        return eta, log_p, drop[right - 1] * (1 - t) + drop[right] * t

    def supported(self, z: float = LEVEL) -> tuple[float, float, float]:
        """Return the best width of the interpolation, and the ends of the set not too far below the best knot."""
        eta, log_p, drop = self.curve(z)
        inside = (log_p >= self.knots[self.best].log_p - drop).nonzero()[:, 0]
        first, last = max(int(inside[0]) - 1, 0), min(int(inside[-1]) + 1, len(eta) - 1)  # rounded outwards
        return float(eta[log_p.argmax()]), float(eta[first]), float(eta[last])

    def holds(self, eta: float) -> bool:
        """Return whether a width is supported; of layers that are held, which know it best, beyond doubt."""
        low, high = self.interval(LEVEL if self.beyond else self.sure)
        return low <= eta <= high

    def interval(self, z: float = LEVEL) -> tuple[float, float]:
        """Return the ends of the set of supported widths; infinite where the scan has found no end."""
        _, low, high = self.supported(z)
        end, best = self.knots[max(self.knots)].log_p, self.knots[self.best].log_p
        open_end = end >= best - self.drop(max(self.knots), z) and not math.isclose(high, self.upper)
        return low, math.inf if open_end else min(high, self.upper)


def cubic(x: Float[Tensor, " m"], y: Float[Tensor, " m"]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Interpolate; the slope at a knot is that of the parabola through it and its neighbours, exact for parabolas."""
    h, rise = x.diff(), y.diff() / x.diff()
    inner = (rise[:-1] * h[1:] + rise[1:] * h[:-1]) / (h[:-1] + h[1:])
    first, last = (inner[:1], inner[-1:]) if len(inner) else (rise, rise)
    m = torch.cat([2 * rise[:1] - first, inner, 2 * rise[-1:] - last])
    t = torch.linspace(0, 1, FINE + 1, dtype=torch.float64)[:-1, None]
    between = (
        (1 + 2 * t) * (1 - t) ** 2 * y[:-1] + t * (1 - t) ** 2 * h * m[:-1]
        + t**2 * (3 - 2 * t) * y[1:] + t**2 * (t - 1) * h * m[1:]
    )  # fmt: skip
    return torch.cat([(x[:-1] + t * h).mT.flatten(), x[-1:]]), torch.cat([between.mT.flatten(), y[-1:]])


def profiled(
    knot: Callable[[float], Knot],
    here: float,
    upper: float,
    limit: float = 0.0,
    cost: tuple[int, int] = SINGLE,
    beyond: bool = True,
    sure: float = LEVEL,
) -> Profile:
    """Evaluate the evidence along a width: a scan both ways from here, then at its best and at the ends of its set.

    The scan includes `limit`. A width whose whole interval is below it has its verdict and is not refined; of several
    widths, one that is below it is scanned from there up.
    """
    top = upper if math.isfinite(upper) else max(1.0, 2 * here)
    even = {top * (j / cost[0]) ** 1.5 for j in range(cost[0] + 1)}
    rungs = sorted({eta for eta in even if eta in (0.0, top) or abs(eta - limit) > 0.3 * limit} | {min(limit, top)})
    found = Profile({here: knot(here)}, upper, beyond, sure)
    first = min(limit, top) if here < limit and cost != SINGLE else 0.0
    up = [eta for eta in rungs if eta > max(here + 0.02 * top, 0.999 * first) or here < eta in (top, limit)]
    down = [eta for eta in reversed(rungs) if eta < here - 0.02 * top or here > eta in (0.0, limit)]
    for way in (up, down):
        for eta in way:
            found.knots[eta] = knot(eta)
            if found.hopeless(eta):
                break
    for _ in range(cost[1]):
        if found.supported(sure)[2] <= limit in found.knots:
            break
        best, low, high = found.supported()
        # Another knot tells most at the best or at an end of the set, whichever is farthest from a knot.
        gap, eta = max((min(abs(known - a) for known in found.knots), a) for a in (best, low, high))
        if gap <= max(0.02 * (high - low), 0.002 * top):
            break
        found.knots[eta] = knot(eta)
    return found


def refit_of(evidence: Elbo | AnyEvidence, batches: Batches, rng: torch.Generator) -> Refit:
    order = torch.randperm(batches.N, generator=rng)
    x, y = taken(batches.x, order).to(batches.device), batches.y[order].to(batches.device)
    seed = int(torch.randint(2**61, (), generator=rng, device=rng.device))
    return REFITS[type(evidence)](evidence, x, y, seed)


def evidence_of(evidence: AnyEvidence, batches: Batches, rng: torch.Generator) -> float:
    """Return the evidence at the widths as they are, as that of a profile, with nothing moved."""
    refit = refit_of(evidence, batches, rng)
    start, log_p = refit.state(), refit.knot().log_p
    total = refit.total(log_p)
    refit.restore(start)
    return evidence.value(batches(), rng) if total is None else total


def intervals(
    evidence: Elbo | AnyEvidence,
    batches: Batches,
    rng: torch.Generator,
    slight: Mapping[str, float],
    tell: Tell = untold,
    jitter: Mapping[str, float] | None = None,
    settle: bool = True,
) -> Findings:
    """Return every width with its interval and verdict, and the evidence there; the model is left at these widths.

    If one of them moved, the output layer is refitted to all data, unless the weights are trained on (not `settle`).
    """
    refit = refit_of(evidence, batches, rng)
    refit.jitter = jitter or {}
    if isinstance(evidence, NtkEvidence) and (bound := refit.knot().log_p) <= guess(batches.y):
        widths = widths_of(refit.model.transform, "undecided")  # a profile is long and would decide nothing
        return undecided_below_guess(Findings(widths, bound), batches.y, LOOSE)
    found = supported(refit, slight, tell, settle)
    if found.log_evidence is None:
        found = replace(found, log_evidence=evidence.value(batches(), rng))
    return undecided_below_guess(found, batches.y)


def supported(refit: Refit, slight: Mapping[str, float], tell: Tell = untold, settle: bool = True) -> Findings:
    """Return every width with interval and verdict, notes on those that moved visibly, and the refitted evidence."""
    transform, widths, notes, log_p, moved = refit.model.transform, {}, [], 0.0, False
    sampling, transform.sampling, start = transform.sampling, "centred", refit.state()
    known: tuple[Knot, Any] | None = None  # knot and state at the widths as they are: shared by all profiles
    try:
        for k, spec in enumerate(transform.specs):
            limit = slight_of(spec, slight)
            found, here, eta, known = _profile(refit, spec, limit, known, partial(_told, tell, k, len(transform.specs)))
            log_p, jitter = found.knots[eta].log_p, refit.jitter.get(spec.name, 0.0)
            ends = {z: found.interval(z) for z in (LEVEL, found.sure)}
            if refit.held:
                ends = {z: widened(*span, eta, here, z * jitter, spec.upper) for z, span in ends.items()}
            least = CLEAR * limit if refit.held and spec.name not in slight else limit
            widths[spec.name] = width_of(spec, eta, *ends[LEVEL], verdict_of(*ends[found.sure], limit, least))
            moved |= eta != here
            better = found.best if eta == here and not found.holds(here) else eta
            if better != here and max(here, better) > limit:
                gain = found.knots[better].log_p - found.knots[here].log_p
                both = {"here": spec.unit.to_person(here), "there": spec.unit.to_person(better)}
                note = MOVED if better == eta else BOTH
                notes.append(note.format(name=spec.name, unit=spec.unit.symbol, gain=gain, **both))
        total = refit.total(log_p)
    finally:
        transform.sampling = sampling
    if not moved:
        refit.restore(start)
    elif settle:
        refit.settle()
    return Findings(widths, total, notes=tuple(notes))


def _profile(
    refit: Refit, spec: WidthSpec, limit: float, known: tuple[Knot, Any] | None, told: Callable[[int], None]
) -> tuple[Profile, float, float, tuple[Knot, Any]]:
    """Return the profile along a width, where it was, where it is now (moved if it was outside), and the knot there."""
    transform, unit = refit.model.transform, spec.unit
    here = unit.from_person(transform.describe()[spec.name])
    floor = -math.inf if refit.y.is_floating_point() else guess(refit.all_y[: refit.N])
    states: dict[float, Any] = {} if known is None else {here: known[1]}

    @cache
    def knot(eta: float) -> Knot:
        if known is not None and eta == here:
            return known[0]
        if states:
            refit.restore(states[min(states, key=lambda other: abs(other - eta))])
        transform.set_widths({spec.name: unit.to_person(eta)})
        found = refit.knot()
        states[eta] = refit.state()
        told(len(states))
        return replace(found, log_p=max(found.log_p, floor))

    if (nothing := knot(here)).log_p <= floor:  # no better than a guess: nothing to see elsewhere
        top = spec.upper if math.isfinite(spec.upper) else here + 1.0
        found = Profile({0.0: nothing, here: nothing, top: nothing}, spec.upper)
        return found, here, here, (nothing, states.get(here, known and known[1]))
    K = len(transform.specs)
    found = profiled(knot, here, spec.upper, limit, SINGLE if K == 1 else SEVERAL, not refit.held, level_of(K))
    reachable = not refit.held or abs(found.best - here) <= NEAR
    eta = found.best if reachable and not found.holds(here) else here
    refit.restore(states[eta])
    transform.set_widths({spec.name: unit.to_person(eta)})
    return found, here, eta, (found.knots[eta], states[eta])


def widened(low: float, high: float, eta: float, here: float, noise: float, upper: float) -> tuple[float, float]:
    """Return the ends of an interval with noise in where its width stands; where it was trained is inside."""
    centre = min(max(eta, low), high)
    below, above = math.hypot(centre - low, noise), math.hypot(high - centre, noise)
    return max(0.0, min(centre - below, here - noise)), min(upper, max(centre + above, here + noise))


def level_of(K: int) -> float:
    """Return the standard deviations of each of K intervals that all hold in 95 %."""
    return LEVEL if K == 1 else NormalDist().inv_cdf(1 - 0.025 / K)


def slight_of(spec: WidthSpec, slight: Mapping[str, float]) -> float:
    """Return the eta below which a width counts as none."""
    return spec.unit.from_person(slight[spec.name]) if spec.name in slight else SLIGHT


def _told(tell: Tell, k: int, K: int, knots: int) -> None:
    """Say how far the scan along the k-th of K widths is, in knots, if all take the usual number."""
    tell(k * usual_knots(K) + min(knots, usual_knots(K)), K * usual_knots(K))


def usual_knots(K: int) -> int:
    """Return about how many knots each of K widths takes."""
    return 14 if K == 1 else 6


BOTH = (
    "{name} ended at {here:.3g} {unit}; the evidence is {gain:.1f} nats higher at {there:.3g}, but the layers below "
    "were not trained there. The interval contains both: train longer, or start there (--width {name}={there:.3g})."
)
"""Said where the evidence is best elsewhere with the layers below held."""
MOVED = "{name} moved from {here:.3g} to {there:.3g} {unit}, where the evidence is {gain:.1f} nats higher."
"""Said where training had ended outside the supported widths."""


def verdict_of(low: float, high: float, limit: float, least: float = 0.0) -> str:
    return "invariant" if low >= max(limit, least) else "not invariant" if high <= limit else "undecided"


def width_of(spec: WidthSpec, eta: float, low: float, high: float, verdict: str) -> Width:
    """Return one width with its interval and the verdict on it."""
    to_person = spec.unit.to_person
    end = to_person(high) if math.isfinite(high) else None
    return Width(to_person(eta), spec.unit.symbol, to_person(low), end, verdict)


NOTE = (
    "The trained network has no more evidence than a guess that never looks at the inputs{less}:"
    " so few data, or data so hard for this network, say nothing of invariances. No width is decided. Take more "
    "data, a network that learns them better, or fewer generators; `augury doctor` tells beforehand if it can work."
)
"""Said where the evidence does not beat a guess."""
LOOSE = (
    "The lower bound on the evidence does not beat a guess that never looks at the inputs{less}:"
    " a bound so loose, or a network that knows so little, decides no width. Train longer, or freeze what has no "
    "Kronecker factors and take evidence='laplace'."
)
"""The same for the bound of the NTK: one that beats a guess proves that the evidence does."""


def undecided_below_guess(found: Findings, y: Shaped[Tensor, "N ..."], note: str = NOTE) -> Findings:
    """Return findings as they are, or without any verdict where their evidence does not beat a guess."""
    value, floor = found.log_evidence, guess(y)
    if value is None or value > floor:
        return found
    less = (floor - value) / len(y)
    note = note.format(less=f" ({less:.2f} nats per input less)" if less >= 0.005 else "")
    widths = {name: replace(width, verdict="undecided") for name, width in found.widths.items()}
    return replace(found, widths=widths, notes=(*found.notes, note))
