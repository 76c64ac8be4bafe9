"""What a run will cost, extrapolated from a few of its own steps; nothing is written.

    seconds = epochs * (steps of an epoch) * step + climbs * climb + end + scores

A training step, an evidence step (a climb) and the evidence at one width (a knot) are timed on the real network and
data. Where inputs are so costly that this would take more than a few seconds, it is done on fewer of them and scaled
up. The end is the usual number of knots for each of K widths, and the evidence of all N data: N / images climbs.
A run that has begun times its own parts as they come, and says by the same sum how long the rest takes.
"""

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
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
from augury.training.loop import TEST_SET
from augury.training.progress import Progress
from augury.transforms.base import Transform

KNOT = 0.7  # a knot in evidence steps, about, if it is too long to be timed
PASSES = 3  # training passes that an input of an evidence step costs, about; and forward passes of a training pass
STEPS = 5  # steps that are timed, after one that is not
CHUNK = 1000  # test inputs that are scored at once
TRIED = 3  # small steps that tell what is affordable
OFTEN, RECENT = 0.5, 100  # seconds between two words on what is left; times behind the mean of a cost
USUAL = 5  # knots as which the usual cost of a knot counts beside those that were timed
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


def climbs_of(config: LearnConfig, done: int = 0) -> int:
    due: list[int] = []
    for epoch in range(1, config.epochs + 1):
        due.append(config.climbs(epoch, config.may_rest(sum(due))))
    return sum(due[done:])


def total_seconds(config: LearnConfig, N: int, M: int, costs: Costs, done: float = 0.0, knots: float = 0.0) -> float:
    """Return about how long a run takes, or what is left of it after so many epochs and knots of its end."""
    training = (config.epochs - done) * (N / min(config.batch, N)) * costs.step
    all_data = costs.climb * N / min(config.evidence_images, N) * math.isfinite(knots)
    end = costs.knot * max(0.0, costs.widths * usual_knots(costs.widths) - knots) + all_data
    scored = M * ((done < config.epochs) + (config.learning == config.epochs))  # the last epoch, and the one kept
    if config.evaluate_every:
        on_the_way = config.epochs // config.evaluate_every - int(done) // config.evaluate_every
        scored += on_the_way * min(M, config.evaluate_images or M)
    return training + climbs_of(config, int(done)) * costs.climb + end + scored * costs.score


class Remaining(Progress):
    """Times the parts of a run as they come, and tells a callback about how long the rest takes."""

    def __init__(self, ready: Prepared, told: Progress, clock: Callable[[], float] = time.perf_counter) -> None:
        learner, own = ready.learner, ready.learner.transform
        self.config, self.told, self.clock = ready.config, told, clock
        self.N, self.M = len(ready.data.x_train), len(ready.data.x_test)
        self.climbs = isinstance(learner, WithEvidence) and learner.evidence is not None
        widths = len(own.specs) if own is not None and _of_intervals(learner) is not None else 0
        self.costs, self.times, self.done, self.knots = Costs(0.0, 0.0, 0.0, widths, 0.0), Counter[str](), 0.0, 0.0
        self.at = self.said = self.begun = -math.inf  # when the last part ended, something was said, the end began

    def step(self, epoch: int, step: int, loss: float) -> None:
        now = self.clock()
        if step > 1:
            self._note("step", now - self.at)
        self.at, self.done = now, epoch - 1 + (step - 1) / steps_of(self.config, self.N)
        if epoch > self.config.learning:
            self.knots = math.inf
        if now - self.said > OFTEN:
            self._tell(now)

    def epoch(self, row: Mapping[str, Any]) -> None:
        now, self.done = self.clock(), float(row["epoch"])
        if LOG_EVIDENCE in row and (climbs := self.config.climbs(row["epoch"])):
            self._note("climb", (now - self.at) / climbs)
        elif self.done < self.config.epochs and {"test_accuracy", "test_error"} & row.keys():
            self._note("score", (now - self.at) / min(self.M, self.config.evaluate_images or self.M))
        self._tell(now)

    def stage(self, what: str, done: int = 0, total: int = 0) -> None:
        now = self.clock()
        if not total:  # the first word of this stage
            self.begun, self.done = now, max(self.done, float(self.config.learning))
            self.knots = math.inf if what == TEST_SET else 0.0
        else:
            knot = (now - self.begun + USUAL * KNOT * self.costs.climb) / (done + USUAL)
            self.knots, self.costs = float(done), replace(self.costs, knot=knot)
        self._tell(now)

    def _note(self, name: str, seconds: float) -> None:
        """Let the mean of a cost follow what was measured last, since the load of a machine changes."""
        self.times[name] += 1
        old = getattr(self.costs, name)
        self.costs = replace(self.costs, **{name: old + (seconds - old) / min(self.times[name], RECENT)})

    def _tell(self, now: float) -> None:
        """Tell what is left; what has not been timed yet is taken for as many passes as it usually costs."""
        costs, config = self.costs, self.config
        if not costs.step:
            return
        per_view, views = costs.step / (min(config.batch, self.N) * config.samples), config.evidence_samples
        usual = per_view * PASSES * (views or config.samples) * _climbed(config) * self.climbs
        climb = costs.climb or usual
        score = costs.score or per_view * config.samples_eval / PASSES
        costs = replace(costs, climb=climb, knot=costs.knot or KNOT * climb, score=score)
        self.said = now
        self.told.remaining(total_seconds(config, self.N, self.M, costs, self.done, self.knots))


def peak_memory(device: str) -> int | None:
    """Return the most memory that was used so far."""
    if torch.device(device).type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
