"""Does the evidence beat a guess? Where it does not, it knows nothing of widths either.

    classes   log p(guess) = sum_c n_c log(n_c / N):  their frequencies, whatever the input
    numbers   a Gaussian about the mean of the targets, with their variance

With few or hard data a network that is evaluated by its evidence can end below that: the more it has learned, the more
its weights cost. Widths then go wherever weights become cheaper, which is no invariance of the data: on 1,000
photographs a shift ran to 13 of 32 pixels, on 1,000 coloured digits a scale to 5. Both had less evidence than a guess,
and no other run of `augury bench policies` and of paper A's recovery had.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Shaped
from torch import Tensor

from augury.training.learner import Findings

NOTE = (
    "The trained network has {value:.2f} nats of evidence per input, a guess that never looks at them {guess:.2f}: so "
    "few data, or data so hard for this network, say nothing of invariances. No width is decided. Take more data, a "
    "network that learns them better, or fewer generators; `augury doctor` tells beforehand whether it can work."
)
"""Said where the evidence does not beat a guess."""


def guess(y: Shaped[Tensor, "N ..."]) -> float:
    """Return the log probability of targets for one who knows how they are distributed, and not the inputs."""
    N = len(y)
    if not y.is_floating_point():
        n = torch.unique(y, return_counts=True)[1].double()
        return float((n * (n / N).log()).sum())
    variance = y.double().flatten(1).var(0, correction=0).clamp_min(torch.finfo(y.dtype).tiny)
    return float(-N / 2 * ((2 * math.pi * variance).log() + 1).sum())


def sober(found: Findings, y: Shaped[Tensor, "N ..."]) -> Findings:
    """Return findings as they are, or without any verdict where their evidence does not beat a guess."""
    value, floor = found.log_evidence, guess(y)
    if value is None or value > floor:
        return found
    note = NOTE.format(value=value / len(y), guess=floor / len(y))
    widths = {name: replace(width, verdict="undecided") for name, width in found.widths.items()}
    return replace(found, widths=widths, notes=(*found.notes, note))
