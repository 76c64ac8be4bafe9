r"""Several trainings of the same data, and what they say together.

The interval of one run conditions on its weights. K runs that differ in their seed alone (first weights, order, noise)
are combined by Rubin's rules, on the scale of eta, with W the mean variance of the K intervals and B the variance of
the K estimates:

    eta = mean,   T = W + (1 + 1/K) B,   nu = (K - 1) (1 + W / ((1 + 1/K) B))^2,   eta +- t_nu sqrt(T)

A verdict of "invariant" is also that of most of the runs.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance
from typing import Any

from augury.core.errors import InputError
from augury.core.files import write_text
from augury.core.units import WidthSpec
from augury.core.world import world_of
from augury.methods.learn import Learned, learn
from augury.methods.widths import level_of, slight_of, verdict_of, width_of
from augury.records.results import Width

SPREAD = "seeds.json"  # what several trainings say together, in their folder


@dataclass(frozen=True)
class Trainings:
    """Several trainings that differ in their seed."""

    runs: tuple[Learned, ...]
    widths: dict[str, Width]  # with intervals that include the spread over the runs


def learn_seeds(
    data: Any, seeds: int, *, run: str | Path | None = None, seed: int = 0, resume: bool = False, **given: Any
) -> Trainings:
    """Train several times with consecutive seeds, and combine what the runs say of each width.

    A folder gets `seed_0`, `seed_1`, ... and `seeds.json`; with `resume`, trainings that have ended are not repeated.
    All else is as for `augury.learn`.
    """
    if seeds < 2:
        raise InputError(f"a spread over seeds needs at least two trainings; got {seeds}.")
    folder = None if run is None else Path(run)
    learned = []
    for k in range(seed, seed + seeds):
        place = None if folder is None else folder / f"seed_{k}"
        again = resume and place is not None and place.exists()
        learned.append(learn(data, run=place, seed=k, resume=again, **given))
    transform, config = learned[0].transform, learned[0].config
    widths = {}
    for spec in (specs := () if transform is None else transform.specs):
        found = [one.invariance.widths[spec.name] for one in learned]
        widths[spec.name] = combined(spec, found, slight_of(spec, config.slight), len(specs))
    if folder is not None and not world_of(given.get("fabric")).rank:
        values = {name: width.to_json() for name, width in widths.items()}
        write_text(folder / SPREAD, json.dumps(values, indent=2) + "\n")
    return Trainings(tuple(learned), widths)


def combined(spec: WidthSpec, found: Sequence[Width], limit: float, widths: int = 1) -> Width:
    """Return one width of several runs with the interval and verdict of all."""
    from_person, K = spec.unit.from_person, len(found)
    if any(width.low is None for width in found):
        raise InputError(f"widths without intervals cannot be combined; {spec.name} has none.")
    eta = [from_person(width.value) for width in found]
    low = [from_person(width.low) for width in found if width.low is not None]
    high = [spec.upper if width.high is None else from_person(width.high) for width in found]
    within = fmean(((b - a) / 3.92) ** 2 for a, b in zip(low, high, strict=True))
    between = (1 + 1 / K) * variance(eta)
    nu = float(K - 1) * (1 + within / between) ** 2 if between > 0 else math.inf

    def ends(together: int) -> tuple[float, float]:
        half = student(nu, together) * math.sqrt(within + between)
        return max(0.0, fmean(eta) - half), min(spec.upper, fmean(eta) + half)

    verdict = verdict_of(*ends(widths), limit)
    if verdict == "invariant" and 2 * sum(width.verdict == verdict for width in found) <= K:
        verdict = "undecided"
    return width_of(spec, fmean(eta), *ends(1), verdict)


def student(nu: float, widths: int = 1) -> float:
    """Return the t with P(|T| < t) = 1 - 0.05 / widths: T = sqrt(nu) tan u, where u has the density cos^(nu - 1)."""
    if nu > 1e4:
        return level_of(widths)
    steps = 20_000
    u = [(k + 0.5) * math.pi / 2 / steps for k in range(steps)]
    density = [math.cos(a) ** (nu - 1) for a in u]
    left, total = (1 - 0.05 / widths) * sum(density), 0.0
    for a, d in zip(u, density, strict=True):
        total += d
        if total >= left:
            return math.sqrt(nu) * math.tan(a)
    raise AssertionError
