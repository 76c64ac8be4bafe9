"""The last step of every adaptation: a head on the features of a plain encoder, its scores and its bound."""

import time
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.adaptation import Adaptation, Bound
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.evidence.bound import bounded_loss
from augury.evidence.head import Head, fit_head
from augury.methods.adapt.scores import held_out, passed, score
from augury.methods.adapt.settings import AdaptConfig

SCORE = {"classification": "accuracy", "regression": "R^2"}


@dataclass(frozen=True, eq=False)
class Readout:
    """A head on features."""

    model: nn.Module
    """Encoder and head, in evaluation mode."""
    head: Head
    """The head, with its evidence."""
    features: Float[Tensor, "N d"]
    """Of the training inputs."""


def read_out(encoder: nn.Module, data: Dataset, config: AdaptConfig, known: object = None) -> Readout:
    """Fit a head to all training examples."""
    features = passed(encoder, data.x_train)
    y = data.y_train.to(features.device)
    head = known if isinstance(known, Head) else None
    if head is None:
        head = fit_head(features, y, data.n_outputs, tolerance=config.tolerance)
    return Readout(nn.Sequential(encoder, head.linear()).eval().requires_grad_(False), head, features)


def record(
    found: Readout, data: Dataset, config: AdaptConfig, descriptors: int, start: float, **facts: Any
) -> Adaptation:
    """Score a readout and write down all that is known of it."""
    seconds, head = time.perf_counter() - start, found.head
    y = data.y_train.to(found.features.device)
    outputs = found.features.double() @ head.weight.T + head.bias
    standardised = (outputs - head.centre) / head.scale
    targets = (y - head.centre) / head.scale if y.is_floating_point() else y
    risk = float(bounded_loss(standardised, targets).mean())
    loss = F.mse_loss(standardised, targets) if y.is_floating_point() else F.cross_entropy(outputs, y)
    estimate = None
    if config.folds:
        estimate = held_out(found.features, y, head, config.folds, generator(config.seed))
    train = score(outputs, y)
    on_test = score(passed(found.model, data.x_test).cpu(), data.y_test) if len(data.x_test) else None
    best = next(s for s in (on_test, estimate, train) if s is not None)
    where = "test" if on_test is not None else "held out" if estimate is not None else "training"
    return Adaptation(**{
        "descriptor": {},
        "score": best,
        "bound": Bound.of(risk, head.reach, head.norm, len(y), descriptors, config.failure),
        "seconds": seconds,
        "score_name": SCORE[data.task],
        "scored_on": where,
        "held_out": estimate,
        "train_score": train,
        "task": data.task,
        "log_evidence": float(head.log_evidence),
        "train_loss": float(loss),
        "delta": head.delta,
        "N": len(y),
        "features": found.features.shape[1],
        "data": data.source,
        **facts,
    })
