"""The inputs on which a model is least invariant, with their views and saliency maps; only a few are kept."""

from dataclasses import dataclass

import torch
from torch import Tensor

from augury.audit.inputs import Inputs
from augury.audit.measures import Comparison
from augury.audit.orbits import Orbit
from augury.records import Worst


@dataclass(frozen=True, eq=False)
class Case:
    """One input with its worst view."""

    index: int
    """Its place in the audited set."""
    view: int
    """Which view."""
    LI: float
    """Logit invariance error of that view."""
    SI: float | None
    """Saliency similarity of that view."""
    prediction: int
    """Largest logit of the input."""
    prediction_moved: int
    """Largest logit of the view."""
    x: Tensor
    """The input."""
    x_g: Tensor
    """The view."""
    m: Tensor | None
    """Saliency map of the input."""
    m_g: Tensor | None
    """Saliency map of the view, in the frame of the input."""


class Gallery:
    """Keeps the k worst cases of all that it is shown."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.cases: list[Case] = []

    def add(self, seen: Comparison, x: Tensor, first: int) -> None:
        """Look at a batch."""
        if self.k == 0:
            return
        worst, view = seen.LI.max(dim=1)
        for b in torch.topk(worst, min(self.k, len(x))).indices.tolist():
            s = int(view[b])
            self.cases.append(
                Case(
                    index=first + b,
                    view=s,
                    LI=float(worst[b]),
                    SI=None if seen.SI is None else float(seen.SI[b, s]),
                    prediction=int(seen.f[b].argmax()),
                    prediction_moved=int(seen.f_g[b, s].argmax()),
                    x=x[b].detach().cpu().clone(),
                    x_g=seen.views[b, s].cpu().clone(),
                    m=None if seen.m is None else seen.m[b].cpu().clone(),
                    m_g=None if seen.m_g is None else seen.m_g[b, s].cpu().clone(),
                )
            )
        self.cases = sorted(self.cases, key=lambda case: -case.LI)[: self.k]

    def records(self, inputs: Inputs, orbit: Orbit) -> tuple[Worst, ...]:
        """Return the cases as plain data."""

        def name(c: int) -> str:
            return inputs.class_names[c] if c < len(inputs.class_names) else str(c)

        return tuple(
            Worst(
                index=case.index,
                label=None if inputs.y is None else name(int(inputs.y[case.index])),
                prediction=name(case.prediction),
                prediction_moved=name(case.prediction_moved),
                strength=orbit.strengths[case.view],
                LI=case.LI,
                SI=case.SI,
            )
            for case in self.cases
        )
