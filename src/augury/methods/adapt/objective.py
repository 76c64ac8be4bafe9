"""What a descriptor is chosen by, as a function of it: the evidence of the head, or minus its training loss."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.evidence.head import Head, Warm, along, fit_head
from augury.evidence.head_basis import normalised
from augury.evidence.head_loss import Loss, fit_loss
from augury.methods.adapt.settings import AdaptConfig

if TYPE_CHECKING:
    from augury.models.hyper import HyperExtractor

KEPT = 4
"""Solved heads that are kept: each holds a matrix of the size of the features."""


@dataclass(frozen=True, eq=False)
class Point:
    """The objective at one descriptor."""

    i: Float[Tensor, " K"]
    """The descriptor."""
    value: float
    """How good it is."""


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
        """Return the objective at a descriptor, from memory where it was met before."""
        if (known := next((p for p in self.points if torch.equal(p.i, i)), None)) is not None:
            return known
        found = self._fit_at(i)
        value = found.log_evidence if isinstance(found, Head) else found.value
        point = Point(i.detach().clone(), float(value))
        self.points.append(point)
        # The heads worth keeping are those that a climb may start from: the best so far.
        self._solved = sorted([*self._solved, (point, found)], key=lambda pair: -pair[0].value)[:KEPT]
        if self.tell is not None:
            self.tell(point)
        return point

    def best(self, points: Sequence[Point]) -> Point:
        """Return the best of some points: by the variational bound where data are few enough for it, else by value."""
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
            found = fit_loss(
                features, self.y, self.n_outputs, ridge=ridge, warm=self.warm, tolerance=tolerance
            )
        self.warm = found.warm
        return found
