"""Choose a descriptor: a design of starts, gradient steps from the best of them, levels.

By evidence the starts are the corners of [0, 1]^K and its middle: from the middle alone the ascent can stick where one
group's entry should first go the other way. By loss there is one start, the middle, as in paper C.
"""

import math
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from augury.methods.adapt.objective import Objective, Point
from augury.methods.adapt.settings import AdaptConfig

ALL_CORNERS = 4
"""Largest K for which every corner is a start."""
SHORTEST = 0.02
"""A climb ends where its step becomes shorter."""
LEAST = 1.0
"""Nats: a climb ends where less evidence than this is to be gained, since so little tells no descriptors apart."""
FINE = 1001
"""Levels of a descriptor that is called continuous: it is written with three digits, and counted so in the bound."""


def starts(K: int, like: Tensor) -> Float[Tensor, "M K"]:
    """Return where to begin."""
    middle = torch.full((1, K), 0.5)
    if K <= ALL_CORNERS:
        corners = torch.tensor(list(product((1.0, 0.0), repeat=K)))
    else:
        eye = torch.eye(K)
        corners = torch.cat([torch.ones(1, K), torch.zeros(1, K), 1 - eye, eye])
    return torch.cat([corners, middle]).to(like)


def choose_descriptor(objective: Objective, K: int, like: Tensor) -> Point:
    """Return the best descriptor that the starts and the climbs find."""
    return objective.best(finalists(objective, K, like))


def finalists(objective: Objective, K: int, like: Tensor) -> list[Point]:
    """Return where the climbs ended, and by evidence the best starts too."""
    config = objective.config
    if config.criterion == "loss":
        return [climb(objective, torch.full((K,), 0.5).to(like), config)]
    tried = sorted((objective.at(i) for i in starts(K, like)), key=lambda p: -p.value)[: config.climbs]
    found = [climb(objective, p.i, config) for p in tried]
    return list({tuple(p.i.tolist()): p for p in [*tried, *found]}.values())


def climb(objective: Objective, start: Float[Tensor, " K"], config: AdaptConfig) -> Point:
    """Take gradient steps inside [0, 1]^K.

    A step moves the entry with the largest derivative by the rate; the rate is halved where the objective falls, and
    the climb ends where nothing is left to gain: at a corner from which every derivative points outwards, at once.
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
    """Return the derivative without what points out of the cube."""
    slope = objective.slope(point)
    outwards = ((point.i <= 0) & (slope < 0)) | ((point.i >= 1) & (slope > 0))
    return torch.where(outwards, torch.zeros_like(slope), slope)


def to_levels(objective: Objective, i: Float[Tensor, " K"], levels: int) -> Float[Tensor, " K"]:
    """Discretise a descriptor."""
    steps = levels - 1
    if objective.config.criterion == "loss" or levels >= FINE or len(i) > ALL_CORNERS:
        return (i * steps).round() / steps
    sides = [_neighbours(v * steps) for v in i.double().tolist()]
    candidates = [torch.tensor(c).to(i) / steps for c in product(*sides)]
    if len(candidates) == 1:
        return candidates[0]
    return objective.best([objective.at(c) for c in candidates]).i


def _neighbours(place: float) -> list[int]:
    """Return the whole numbers beside a place, or the one that it is."""
    nearest = round(place)
    return [nearest] if abs(place - nearest) < 1e-5 else [math.floor(place), math.ceil(place)]
