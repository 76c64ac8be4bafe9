"""The search for a descriptor by the evidence of a head or its training loss: starts, gradient steps, levels.

By evidence the starts are the corners of [0, 1]^K and its middle: from the middle alone the ascent can get
stuck in a local optimum. By loss there is one start, the middle, as in paper C.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.config.hyper import AdaptConfig
from augury.evidence.head import Head, Loss, Warm, along, fit_head, fit_loss
from augury.evidence.head_softmax import normalised
from augury.records.results import entry_verdict

if TYPE_CHECKING:
    from augury.models.hypernetwork import HyperExtractor


KEPT = 4  # number of solved heads to keep: each holds a matrix of the size of the features


@dataclass(frozen=True, eq=False)
class Point:
    """The objective at one descriptor."""

    i: Float[Tensor, " K"]
    value: float  # how good it is


class Objective:
    """From descriptors to evidence or loss, on one set of examples.

    Batch normalisation must see exactly these examples: call `extractor.calibrate(x)` before.
    """

    def __init__(
        self,
        extractor: "HyperExtractor",
        x: Float[Tensor, "N ..."],
        y: Shaped[Tensor, "N ..."],
        n_outputs: int,
        config: AdaptConfig,
    ) -> None:
        self.extractor, self.x, self.y, self.n_outputs, self.config = extractor, x, y, n_outputs, config
        self.warm: Warm | None = None
        self.points: list[Point] = []
        self.tell: Callable[[Point], None] | None = None
        self._solved: list[tuple[Point, Head | Loss]] = []

    def at(self, i: Float[Tensor, " K"]) -> Point:
        """Return the objective at a descriptor, cached."""
        if (known := next((p for p in self.points if torch.equal(p.i, i)), None)) is not None:
            return known
        found = self._fit_at(i)
        value = found.log_evidence if isinstance(found, Head) else found.value
        point = Point(i.detach().clone(), float(value))
        self.points.append(point)
        # Keep the best heads: an ascent may start from these.
        self._solved = sorted([*self._solved, (point, found)], key=lambda pair: -pair[0].value)[:KEPT]
        if self.tell is not None:
            self.tell(point)
        return point

    def best(self, points: Sequence[Point]) -> Point:
        """Return the best of some points: by the variational bound if it is cheap enough, else by value."""
        bounds: list[float] = []
        for point in points if len(points) > 1 else ():
            found = self.solved(point.i) or self._fit_at(point.i)
            if not isinstance(found, Head) or found.variational is None:
                break
            bounds.append(found.variational())
        values = bounds if len(bounds) == len(points) else [point.value for point in points]
        return points[max(range(len(points)), key=values.__getitem__)]

    def _fit_at(self, i: Float[Tensor, " K"]) -> Head | Loss:
        with torch.no_grad():
            return self._fit(self.extractor(self.x, i))

    def slope(self, point: Point) -> Float[Tensor, " K"]:
        """Return the derivative at a descriptor; its head is not solved again if it was among the best."""
        i = point.i.clone().requires_grad_()
        with torch.enable_grad():
            features = self.extractor(self.x, i)
            found = self.solved(point.i) or self._fit(features.detach())
            value = along(normalised(features).Z, found.slope())
        return torch.autograd.grad(value, i)[0]

    def solved(self, i: Float[Tensor, " K"]) -> Head | Loss | None:
        """Return the head that was solved at a descriptor, if it is still there."""
        return next((found for point, found in self._solved if torch.equal(point.i, i)), None)

    def _fit(self, features: Float[Tensor, "N d"]) -> Head | Loss:
        tolerance = self.config.tolerance
        found: Head | Loss
        if self.config.criterion == "evidence":
            found = fit_head(features, self.y, self.n_outputs, warm=self.warm, tolerance=tolerance)
        else:
            ridge = self.config.ridge
            found = fit_loss(features, self.y, self.n_outputs, ridge=ridge, warm=self.warm, tolerance=tolerance)
        self.warm = found.warm
        return found


ALL_CORNERS = 4  # largest K for which every corner is a start
SHORTEST = 0.02  # smallest step of an ascent
LEAST = 1.0  # smallest gain of a step in nats: smaller differences do not distinguish descriptors
FINE = 1001  # levels of a continuous descriptor: three digits, counted in the bound


def starts(K: int, like: Tensor) -> Float[Tensor, "M K"]:
    middle = torch.full((1, K), 0.5)
    if K <= ALL_CORNERS:
        corners = torch.tensor(list(product((1.0, 0.0), repeat=K)))
    else:
        eye = torch.eye(K)
        corners = torch.cat([torch.ones(1, K), torch.zeros(1, K), 1 - eye, eye])
    return torch.cat([corners, middle]).to(like)


def finalists(objective: Objective, K: int, like: Tensor) -> list[Point]:
    """Return the ends of the ascents and, by evidence, the best starts."""
    config = objective.config
    if config.criterion == "loss":
        return [climb(objective, torch.full((K,), 0.5).to(like), config)]
    tried = sorted((objective.at(i) for i in starts(K, like)), key=lambda p: -p.value)[: config.climbs]
    found = [climb(objective, p.i, config) for p in tried]
    return list({tuple(p.i.tolist()): p for p in [*tried, *found]}.values())


def climb(objective: Objective, start: Float[Tensor, " K"], config: AdaptConfig) -> Point:
    """Take gradient steps inside [0, 1]^K.

    A step moves the entry with the largest derivative by the rate; the rate is halved if the objective falls. The
    ascent ends if nothing is left to gain, such as at a corner where every derivative points outwards.
    """
    best, rate = objective.at(start), config.rate
    inwards = _inwards(objective, best)
    least = LEAST if config.criterion == "evidence" else config.tolerance
    for _ in range(config.steps):
        size = float(inwards.abs().max())
        if rate < SHORTEST or size * rate < least:
            break
        there = objective.at((best.i + rate / size * inwards).clamp(0, 1))
        if there.value > best.value:
            best, rate = there, min(1.0, 1.5 * rate)
            inwards = _inwards(objective, best)
        else:
            rate /= 2
    return best


def _inwards(objective: Objective, point: Point) -> Tensor:
    """Return the derivative without components that point out of the cube."""
    slope = objective.slope(point)
    outwards = ((point.i <= 0) & (slope < 0)) | ((point.i >= 1) & (slope > 0))
    return torch.where(outwards, torch.zeros_like(slope), slope)


def to_levels(objective: Objective, i: Float[Tensor, " K"], levels: int) -> Float[Tensor, " K"]:
    """Discretise a descriptor."""
    steps = levels - 1
    if objective.config.criterion == "loss" or levels >= FINE or len(i) > ALL_CORNERS:
        return (i * steps).round() / steps
    places = [v * steps for v in i.double().tolist()]
    sides = [(round(p),) if abs(p - round(p)) < 1e-5 else (math.floor(p), math.ceil(p)) for p in places]
    candidates = [torch.tensor(c).to(i) / steps for c in product(*sides)]
    if len(candidates) == 1:
        return candidates[0]
    return objective.best([objective.at(c) for c in candidates]).i


def entry_margins(objective: Objective, i: Float[Tensor, " K"]) -> list[float]:
    """Return how much better a descriptor is than the best known one that says the opposite, for each entry.

    The opposite of invariant is sensitive; that of something in between is either.
    """
    here, margins = objective.at(i), []
    for k, value in enumerate(i.tolist()):
        said = entry_verdict(value)
        for end in (0.0, 1.0):
            if entry_verdict(end) != said:
                objective.at(i.index_fill(0, torch.tensor(k, device=i.device), end))
        others = [p.value for p in objective.points if entry_verdict(float(p.i[k])) not in (said, "in between")]
        margins.append(here.value - max(others))
    return margins
