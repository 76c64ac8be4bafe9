"""One pass over a set of inputs: what a model makes of them and of their views, in memory set by the batch."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from augury.audit.boundary import Model
from augury.audit.inputs import Inputs
from augury.audit.measures import compare
from augury.audit.orbits import Orbit
from augury.audit.tally import Tally
from augury.audit.worst import Gallery
from augury.core.rng import generator

Step = Callable[[str, int, int], None]
"""Told what is being looked at, how many inputs are done, and of how many."""


@dataclass(frozen=True, eq=False)
class Survey:
    """What every pass of one audit shares."""

    model: Model
    """The model."""
    orbit: Orbit
    """The views."""
    C: int
    """Outputs of the model."""
    saliency: str | None
    """How saliency maps are made; None without gradients."""
    batch: int
    """Views in one forward pass."""
    seed: int
    """Seed of the directions in which inputs are moved."""
    step: Step
    """Whoever watches."""

    def look(
        self, what: str, inputs: Inputs, gallery: Gallery | None = None, forth_and_back: bool = False
    ) -> Tally:
        """Go over the inputs once."""
        groups = max(self.C, len(inputs.class_names))
        labelled = inputs.y is not None and len(inputs.class_names) == self.C
        tally = Tally(self.orbit, groups, probabilities=not inputs.regression)
        rng, done = generator(self.seed), 0
        for x in inputs.x.split(max(1, self.batch // (self.orbit.S + 1))):
            moves = self.orbit.moves(len(x), rng)
            move = moves.forth_and_back if forth_and_back else moves.forth
            seen = compare(self.model, x, move, self.orbit.S, self.saliency)
            if inputs.y is not None:
                group = inputs.y[done : done + len(x)]
            else:
                group = torch.zeros(len(x), dtype=torch.int64) if inputs.regression else seen.f.argmax(-1)
            tally.add(seen, group.to(seen.f.device), labelled)
            if gallery is not None:
                gallery.add(seen, x, done)
            done += len(x)
            self.step(what, done, len(inputs.x))
        return tally
