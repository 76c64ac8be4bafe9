"""Intervals and verdicts after a training loop of one's own."""

from collections.abc import Mapping

import torch

from augury.core.errors import InputError, choose
from augury.evidence.ascent import AnyEvidence
from augury.evidence.climbing import BATCH, Climber, Data, all_pairs
from augury.methods import widths
from augury.methods.kept import confirmed
from augury.training.batches import Batches
from augury.training.learner import Findings


def intervals(
    evidence: AnyEvidence, data: Data, rng: torch.Generator, slight: Mapping[str, float | int] | None = None
) -> Findings:
    """Return every width with its interval and verdict, as `augury.learn` does in the end.

    A width that training left outside its interval moves to the best one, and the output layer is refitted there.

    Parameters
    ----------
    evidence
        The evidence, after training.
    data
        All of the training data, as for `Evidence.step`.
    rng
        Where the noise comes from.
    slight
        Widths in their units below which a transformation counts as none in the verdict. Default: 6 degrees, a tenth
        of the scale, 5 % of the image.

    Returns
    -------
    Findings
        Widths, evidence and notes.
    """
    if not isinstance(evidence, Climber):
        raise InputError(f"intervals come from an augury.Evidence; got {type(evidence).__name__}.")
    limits = {name: float(value) for name, value in (slight or {}).items()}
    for name in limits:
        choose("generator in slight", name, evidence.model.transform.names)
    x, y = (torch.cat(parts) for parts in zip(*all_pairs(evidence, data), strict=True))
    batches = Batches(x, y, BATCH, x.device)
    return confirmed(widths.intervals(evidence, batches, rng, limits), evidence, batches)
