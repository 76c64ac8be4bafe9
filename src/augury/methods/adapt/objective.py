"""What a descriptor is chosen by, as a function of it: the evidence of the head, or minus its training loss."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.evidence.head import Warm, fit_head
from augury.evidence.head_loss import fit_loss
from augury.methods.adapt.settings import AdaptConfig

if TYPE_CHECKING:
    from augury.models.hyper import HyperExtractor


@dataclass(frozen=True, eq=False)
class Point:
    """The objective at one descriptor."""

    i: Float[Tensor, " K"]
    """The descriptor."""
    value: float
    """How good it is."""
    slope: Float[Tensor, " K"] | None
    """Its derivative, where it was asked for."""


class Objective:
    """From descriptors to evidence or loss, on one set of examples.

    Batch normalisation must see exactly these examples: call `extractor.calibrate(x)` before.

    Parameters
    ----------
    extractor
        Frozen.
    x, y
        Examples.
    n_outputs
        Classes, or dimensions of the target.
    config
        Criterion and tolerances.
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

    def at(self, i: Float[Tensor, " K"], slope: bool = False) -> Point:
        """Return the objective at a descriptor, from memory where it was met before.

        Parameters
        ----------
        i
            The descriptor.
        slope
            Whether to differentiate in it.

        Returns
        -------
        Point
            Value and derivative.
        """
        met = (p for p in self.points if torch.equal(p.i, i) and (p.slope is not None or not slope))
        if (known := next(met, None)) is not None:
            return known
        i = i.detach().clone().requires_grad_(slope)
        with torch.set_grad_enabled(slope):
            value = self._value(self.extractor(self.x, i))
        found = torch.autograd.grad(value, i)[0] if slope else None
        point = Point(i.detach(), float(value.detach()), found)
        self.points.append(point)
        if self.tell is not None:
            self.tell(point)
        return point

    def _value(self, features: Float[Tensor, "N d"]) -> Float[Tensor, ""]:
        tolerance = self.config.tolerance
        if self.config.criterion == "evidence":
            head = fit_head(features, self.y, self.n_outputs, warm=self.warm, tolerance=tolerance)
            self.warm = head.warm
            return head.log_evidence
        value, self.warm = fit_loss(
            features, self.y, self.n_outputs, ridge=self.config.ridge, warm=self.warm, tolerance=tolerance
        )
        return value
