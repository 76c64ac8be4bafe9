"""What a run will cost, extrapolated from a few of its own steps; nothing is written.

    seconds = epochs * (steps of an epoch) * step + climbs * climb + end + scores

A training step, an evidence step (a climb) and the evidence at one width (a knot) are timed on the real network and
data. Where inputs are so costly that this would take more than a few seconds, it is done on fewer of them and scaled
up. The end is the usual number of knots for each of K widths, and the evidence of all N data: N / images climbs.
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from statistics import median
from typing import Any

import torch
from torch import nn

from augury.config.learn import DEFAULT_METHOD, LearnConfig
from augury.config.synonyms import renamed
from augury.curvature.tape import rows_per_pass
from augury.evidence.ascent import AnyEvidence
from augury.evidence.elbo import Elbo
from augury.methods.invariant_weights import InvariantWeights
from augury.methods.lila import Lila, WithEvidence
from augury.methods.prepare import Prepared, prepare
from augury.methods.widths import refit_of, usual_knots
from augury.models.orbit import OrbitAverage
from augury.records.results import Record
from augury.training.batches import Batches, own_global_stream, streams
from augury.training.evaluate import outputs_of
from augury.training.learner import LOG_EVIDENCE, Learner
from augury.transforms.base import Transform

KNOT = 0.7  # a knot in evidence steps, about, if it is too long to be timed
PASSES = 3  # training passes that an input of an evidence step costs, about
STEPS = 5  # steps that are timed, after one that is not
CHUNK = 1000  # test inputs that are scored at once
TRIED = 3  # small steps that tell what is affordable
SCORED = 20  # test inputs whose forward pass is timed, at most
STEP_SECONDS, CLIMB_SECONDS, SCORE_SECONDS = 1.0, 4.0, 10.0
"""About how long the steps (or the timed scores), the evidence step, and the scores for the memory may take."""


@dataclass(frozen=True)
class Costs(Record):
    """Seconds of the parts of a run."""

    step: float  # one training step
    climb: float  # an evidence step; 0 for a method without
    knot: float  # the evidence at one width, as intervals need it; 0 for a method without
    widths: int  # widths that get an interval; 0 for a method without
    score: float  # the forward pass of one test input

    def scaled(self, whole: LearnConfig, part: LearnConfig) -> "Costs":
        """Return the costs of whole batches and samples, from those of a part."""
        r = _climbed(whole) / _climbed(part)
        step = self.step * whole.batch / part.batch
        return replace(self, step=step, climb=self.climb * r, knot=self.knot * r)


@dataclass(frozen=True)
class Forecast(Record):
    """What a run will do, and what it will cost."""

    method: str
    model: str
    weights: int  # its trainable parameters
    data: str  # where the data come from
    train: int
    test: int
    widths: tuple[str, ...]  # what is learned, or given
    epochs: int  # passes over the data
    steps: int  # steps in an epoch
    climbs: int  # evidence steps in the whole run
    device: str  # where it trains
    seconds: float  # about how long, tests included
    memory: int | None  # peak of this process in bytes, intervals and scores included, or of the GPU; None if unknown
    costs: Costs  # what the seconds are computed from


def forecast(
    data: Any,
    model: str | nn.Module | None = None,
    method: str = DEFAULT_METHOD,
    *,
    transform: Transform | None = None,
    clock: Callable[[], float] = time.perf_counter,
    **settings: Any,
) -> Forecast:
    """Estimate the cost of a run from a few of its steps; a user's own module is trained by them."""
    ready = prepare(data, model, method, transform, settings)
    with own_global_stream(ready.config.seed):
        few = affordable(ready, clock)
        smaller = prepare(ready.data, model, method, transform, {**renamed(settings), **few})
        costs = measure(smaller, clock, few["evidence_images"] == ready.config.evidence_images)
        costs = costs.scaled(ready.config, smaller.config)
        if len(ready.data.x_test):  # the scores of a run may have its peak of memory
            outputs_of(ready.learner.model, ready.data.x_test[: _at_once(ready.learner.model, costs.score)])
    config, N, own = ready.config, len(ready.data.x_train), ready.learner.transform
    parameters = {id(p): p for m in ready.learner.modules().values() for p in m.parameters()}
    widths = [] if own is None else list(own.parameters())
    free = [p for p in parameters.values() if p.requires_grad and all(p is not w for w in widths)]
    return Forecast(
        method=config.method,
        model=config.model or "",
        weights=sum(p.numel() for p in free),
        data=ready.data.source,
        train=N,
        test=len(ready.data.x_test),
        widths=() if own is None else own.names,
        epochs=config.epochs,
        steps=steps_of(config, N),
        climbs=climbs_of(config) if costs.climb else 0,
        device=config.device,
        seconds=total_seconds(config, N, len(ready.data.x_test), costs),
        memory=peak_memory(config.device),
        costs=costs,
    )


def _at_once(model: nn.Module, score: float) -> int:
    """Return how many test inputs are passed at once, or a few if these would take too long."""
    n = min(CHUNK, max(1, model.chunk // model.samples_eval)) if isinstance(model, OrbitAverage) else CHUNK
    return n if n * score < SCORE_SECONDS else SCORED


def affordable(ready: Prepared, clock: Callable[[], float]) -> dict[str, int]:
    """Return settings with as few inputs as can be timed at once, from a small step.

    An evidence step has at least the inputs of one pass, since these have its peak of memory.
    """
    config, data, n = ready.config, ready.data, 4
    rng, x, y = streams(config.seed)["views"], data.x_train[:n], data.y_train[:n]
    x, y = x.to(config.device), y.to(config.device)
    ready.learner.train_step(x[:2], y[:2], rng)  # the first one loads what must be loaded
    times = []
    for _ in range(TRIED):
        started = clock()
        ready.learner.train_step(x, y, rng)
        times.append(clock() - started)
    per_view = max(min(times) / (len(x) * config.samples), 1e-9)  # other processes only make it longer
    batch = STEP_SECONDS / (per_view * (STEPS + 1) * config.samples)
    views = config.evidence_samples or config.samples
    share = math.sqrt(min(1.0, CLIMB_SECONDS / (per_view * PASSES * views * _climbed(config))))
    few = {"evidence_images": share**2, "eta_images": share, "eta_steps": share}
    found = {name: max(1, round(part * getattr(config, name))) for name, part in few.items()}
    if (evidence := _of_intervals(ready.learner)) is not None:
        at_once = max(1, rows_per_pass(evidence.model.net, x[:1]) // views)
        for name in ("evidence_images", "eta_images"):
            found[name] = min(getattr(config, name), max(found[name], at_once))
    return found | {"batch": max(2, min(config.batch, int(batch))), "evidence_every": 1, "epochs": config.epochs}


def _climbed(config: LearnConfig) -> int:
    """Return how many inputs an evidence step takes."""
    return config.evidence_images + config.eta_steps * config.eta_images


def measure(ready: Prepared, clock: Callable[[], float] = time.perf_counter, knots: bool = True) -> Costs:
    """Time a few steps, an evidence step, a knot if it is not too long, a few test inputs; this changes the learner."""
    config, data, learner = ready.config, ready.data.standardised(), ready.learner
    batches = Batches(data.x_train, data.y_train, config.batch, torch.device(config.device))
    rng = streams(config.seed)["views"]
    for module in learner.modules().values():
        module.train()
    times = []
    for x, y in islice(chain.from_iterable(batches(rng) for _ in repeat(None)), STEPS + 1):
        started = clock()
        learner.train_step(x, y, rng)
        times.append((clock() - started) / len(x))
    if isinstance(learner, WithEvidence):
        learner.climbing = True  # after so few steps it has not learned enough to begin by itself
    started = clock()
    found = learner.end_epoch(batches, config.learning, rng)
    climb = (clock() - started) / max(1, config.climbs(config.learning)) if LOG_EVIDENCE in found else 0.0
    quick = STEP_SECONDS / max(median(times[1:]) * config.samples_eval / config.samples, 1e-9)
    some, own = data.x_test[: max(1, min(SCORED, int(quick)))], learner.transform
    started = clock()
    if len(some):
        outputs_of(learner.model, some)
    score = (clock() - started) / max(1, len(some))
    evidence, knot = _of_intervals(learner), 0.0
    if evidence is not None:
        started = clock()
        if knots:
            refit_of(evidence, batches, rng).knot()
        knot = clock() - started if knots else KNOT * climb
    widths = 0 if own is None or not knot else len(own.specs)
    return Costs(median(times[1:]) * min(config.batch, batches.N), climb, knot, widths, score)


def _of_intervals(learner: Learner) -> Elbo | AnyEvidence | None:
    """Return the evidence whose profiles the method ends with, if it does."""
    if isinstance(learner, Lila):
        return learner.evidence
    return learner.bound if isinstance(learner, InvariantWeights) and learner.widths else None


def steps_of(config: LearnConfig, N: int) -> int:
    return -(-N // config.batch)


def climbs_of(config: LearnConfig) -> int:
    return sum(config.climbs(epoch) for epoch in range(1, config.epochs + 1))


def total_seconds(config: LearnConfig, N: int, M: int, costs: Costs) -> float:
    """Return about how long a run takes."""
    training = config.epochs * (N / min(config.batch, N)) * costs.step
    end = costs.knot * costs.widths * usual_knots(costs.widths) + costs.climb * N / min(config.evidence_images, N)
    scored = M if config.learning < config.epochs else 2 * M  # after the last epoch, and of the one that is kept
    if config.evaluate_every:
        scored += (config.epochs // config.evaluate_every) * min(M, config.evaluate_images or M)
    return training + climbs_of(config) * costs.climb + end + scored * costs.score


def peak_memory(device: str) -> int | None:
    """Return the most memory that was used so far."""
    if torch.device(device).type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
