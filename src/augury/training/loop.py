"""The only training loop.

    for each epoch:  a step on every mini-batch, in a seeded order, rates set by cosine
                     what the method does once per epoch
                     a line of metrics; the best evidence so far; a checkpoint if one is due, or a signal came
    restore the epoch with the best evidence; let the learner conclude
    epochs on the weights alone, if the settings ask for them (`finish`); score the test set

The test set is only scored, never trained on or chosen by. Training stops early (`settle_window`) when widths and
evidence no longer drift: the mean of the newer half of a window of epochs is compared with that of the older half, of
widths as eta (radians, half image sizes, log-scales: numbers near 1), of the evidence per training example (nats).
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from augury.config.learn import LearnConfig
from augury.core.errors import RunError
from augury.data.dataset import Dataset
from augury.data.rows import taken
from augury.models.batchnorm import hold_frozen
from augury.training.batches import Batches, own_global_stream, streams
from augury.training.checkpoint import (
    Best,
    RunState,
    checkpoints,
    learned,
    load_checkpoint,
    put_back,
    remove_old,
    restore_learned,
    save_checkpoint,
    take,
)
from augury.training.evaluate import outputs_of, score_of
from augury.training.interruption import Held, held_back
from augury.training.learner import LOG_EVIDENCE, Findings, Learner
from augury.training.progress import Progress
from augury.training.run_folder import RunFolder

TEST_SET = "test set"  # the last stage of a run

Scored = tuple[dict[str, float], Tensor | None]  # test scores by name, and the outputs that they come from


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of training; the learner itself holds the chosen epoch's state."""

    findings: Findings  # widths, evidence and notes
    scores: dict[str, float]  # the test score under its name; nothing without a test set
    rows: list[dict[str, Any]]  # a line of metrics for each epoch
    epoch: int  # the epoch whose state was kept: the last one, or the one with the best evidence
    seconds: float  # training time with the intervals, test scores aside
    outputs: Float[Tensor, "M D"] | None = None  # the model's outputs on the test inputs; None without a test set


def fit(
    learner: Learner,
    data: Dataset,
    config: LearnConfig,
    folder: RunFolder | None = None,
    progress: Progress | None = None,
    method: str | None = None,
) -> Fit:
    """Train a learner from start to end, or from its folder's checkpoint to the end.

    If the targets are standardised, scores, outputs and evidence are in their own units all the same.
    Callbacks are told the name `method` (default: that of the settings).
    """
    batches = Batches(data.x_train, data.y_train, config.batch, torch.device(config.device), learner.world)
    progress = Progress() if progress is None else progress
    specs = () if learner.transform is None else learner.transform.specs
    with own_global_stream(config.seed):
        run = _Training(learner, data, batches, config, RunState(streams(config.seed)), folder, progress)
        run.begin()
        progress.ahead([*filter(None, (learner.ends_with, TEST_SET * bool(len(data.x_test))))])
        units = {spec.name: spec.unit.symbol for spec in specs}
        progress.start(method or config.method, config.epochs, len(batches), run.state.epoch, units)
        try:
            return run.to_the_end()
        except torch.linalg.LinAlgError as error:
            raise _lost(f"a matrix could not be decomposed ({str(error).split(':')[0]})") from error
        finally:
            progress.stop()


@dataclass(frozen=True, eq=False)
class _Training:
    """One learner on its way: what it learns from, how, and where it is."""

    learner: Learner
    data: Dataset
    batches: Batches
    config: LearnConfig
    state: RunState
    folder: RunFolder | None
    progress: Progress

    def begin(self) -> None:
        """Take up the folder's checkpoint, if there is one."""
        learner, state, folder = self.learner, self.state, self.folder
        found = load_checkpoint(folder.checkpoint) if folder and checkpoints(folder.checkpoint) else None
        found = learner.world.objects(found)[0]  # the first process reads and writes
        if found is not None:
            tensors, facts, damaged = found
            put_back(learner, state, tensors, facts)
            for what in damaged:
                self.progress.note(f"{what}; the run resumes from the checkpoint before it, after epoch {state.epoch}.")
            if "rows" not in facts and folder is not None:
                state.rows = folder.rows()[: state.epoch]
        if folder is not None:
            folder.write_rows(state.rows)
            if found is not None and not found[2]:  # newer ones that are damaged would be all that is left
                remove_old(folder.checkpoint)

    def to_the_end(self) -> Fit:
        learner, config, state = self.learner, self.config, self.state
        kept, scored = config.epochs, None
        if state.findings is None:
            self.train(config.learning)
            kept = self.restore_best()
            state.findings = self.conclude()
        if config.learning < config.epochs and state.epoch >= config.learning:
            kept = config.epochs
            learner.finish()
            scored = self.train(config.epochs)
        findings = learner.confirm(state.findings, self.batches)
        if findings.log_evidence is not None:
            in_units = findings.log_evidence - self.batches.N * self.data.log_scale
            findings = replace(findings, log_evidence=in_units)
        if len(self.data.x_test):
            self.progress.stage(TEST_SET)
        scores, outputs = scored or self.scores()
        learner.model.eval()
        return Fit(findings, scores, state.rows, kept, state.seconds, outputs)

    def train(self, until: int) -> Scored | None:
        """Train until an epoch; return the scores after the last one, unless it was done before."""
        learner, config, state, folder = self.learner, self.config, self.state, self.folder
        scored, saved_at = None, time.monotonic()
        over = state.epoch >= until or self.at_rest()
        with held_back(folder is not None or learner.world.size > 1) as signals:
            while not over:
                row = self.epoch(signals)
                for name in (LOG_EVIDENCE, "log_likelihood"):
                    if name in row:
                        row[name] -= self.batches.N * self.data.log_scale
                state.rows.append(row)
                over = state.epoch >= until or self.at_rest()
                last = over and until == config.epochs
                if last or (config.evaluate_every and state.epoch % config.evaluate_every == 0):
                    scored = self.scores(0 if last else config.evaluate_images)
                    row |= scored[0]
                evidence, may_choose = row.get(LOG_EVIDENCE), state.epoch >= config.choose_from * config.learning
                best = -math.inf if state.best is None else state.best.log_evidence
                if may_choose and evidence is not None and evidence > best:
                    state.best = Best(state.epoch, evidence, learned(learner))
                self.progress.epoch(row)
                if folder is not None:
                    folder.add_row(row)
                stop = signals.agreed(learner.world)
                if over or stop or time.monotonic() - saved_at >= config.checkpoint_seconds:
                    self.save()
                    saved_at = time.monotonic()
                if stop:
                    signals.deliver(learner.world)
        return scored

    def epoch(self, signals: Held) -> dict[str, Any]:
        """Take an epoch, or what is left of it; a signal saves a checkpoint after the present step."""
        learner, batches, config, state = self.learner, self.batches, self.config, self.state
        started = time.perf_counter()
        for module in learner.modules().values():
            module.train()
            hold_frozen(module)
        epoch, rng, shuffle = state.epoch + 1, state.rngs["views"], torch.Generator()
        shuffle.set_state(state.rngs["shuffle"].get_state())  # that of the state stays at the epoch's start
        for step, (x, y, part) in enumerate(batches.parts(shuffle)):
            if step < state.step:
                continue
            for schedule in learner.schedules():
                schedule.set((state.epoch * len(batches) + step) / (config.epochs * len(batches)))
            rng.part = part
            learner.world.seed_step((config.seed, epoch, step))
            with learner.world.autocast():
                loss = learner.train_step(x, y, rng)
            if not math.isfinite(loss):
                raise _lost(f"the loss became {loss} at epoch {epoch}, step {step + 1} of {len(batches)}")
            state.step, state.total = step + 1, state.total + loss * (len(x) if part is None else part.total)
            self.progress.step(epoch, step + 1, loss)
            if signals.agreed(learner.world):
                self.save()
                signals.deliver(learner.world)
        rng.part = None
        self.align()
        diagnostics = learner.end_epoch(batches, epoch, rng)
        self.check_finite(diagnostics, epoch)
        state.rngs["shuffle"].set_state(shuffle.get_state())
        total, state.total, state.step = state.total, 0.0, 0
        state.epoch, state.seconds = epoch, state.seconds + time.perf_counter() - started
        widths = learner.transform.describe() if learner.transform is not None else {}
        return {"epoch": epoch, "loss": total / batches.N, "widths": widths, **diagnostics, "seconds": state.seconds}

    def save(self) -> None:
        if self.folder is not None:
            tensors, facts = take(self.learner, self.state)
            save_checkpoint(self.folder.checkpoint, self.state.epoch, tensors, facts, self.state.step)

    def align(self) -> None:
        """Give every process the state of the first: machines of different kinds may round differently."""
        modules = self.learner.modules().values()
        self.learner.world.same_(t for module in modules for t in module.state_dict().values())

    def check_finite(self, diagnostics: dict[str, float], epoch: int) -> None:
        for name, value in diagnostics.items():
            if not math.isfinite(value):
                raise _lost(f"{name} became {value} at the end of epoch {epoch}")
        for name, tensor in learned(self.learner).items():
            if tensor.is_floating_point() and not tensor.isfinite().all():
                raise _lost(f"{name.removeprefix('modules/')} became NaN or infinite in epoch {epoch}")

    def at_rest(self) -> bool:
        transform, config, rows = self.learner.transform, self.config, self.state.rows
        if transform is None:
            return False
        units = {spec.name: spec.unit for spec in transform.specs}
        etas = [[units[name].from_person(value) for name, value in row["widths"].items()] for row in rows]
        evidences = [row[LOG_EVIDENCE] / self.batches.N for row in rows if LOG_EVIDENCE in row]
        return settled(etas, evidences, config.settle_window, config.settle_eta, config.settle_evidence)

    def scores(self, most: int = 0) -> Scored:
        """Score test inputs at equal distances, since many sets are sorted by class; 0 scores all."""
        data, world = self.data, self.learner.world
        step = max(1, -(-len(data.x_test) // most) if most else 1)
        x, y = taken(data.x_test, slice(None, None, step)), data.y_test[::step]
        if not len(x):
            return {}, None
        part = world.part(len(x))
        own = x if part is None else taken(x, part.rows)
        outputs = world.gather(outputs_of(self.learner.model, own), part)
        if data.target_scale:
            outputs, y = data.to_units(outputs), data.to_units(y)
        return score_of(outputs, y, data.task), outputs

    def restore_best(self) -> int:
        """Go back to the epoch with the best evidence, if the method has one; return which epoch is kept."""
        epoch, best = self.state.epoch, self.state.best
        if best is not None:
            restore_learned(self.learner, best.tensors)
            epoch, self.state.best = best.epoch, None
        self.align()
        return epoch

    def conclude(self) -> Findings:
        learner, started = self.learner, time.perf_counter()
        if learner.ends_with:
            self.progress.stage(learner.ends_with)
            learner.tell = partial(self.progress.stage, learner.ends_with)
        findings = learner.conclude(self.batches, self.state.rngs["views"])
        self.state.seconds += time.perf_counter() - started
        return findings


def _lost(what: str) -> RunError:
    return RunError(
        f"{what}, so the run was stopped; its last good checkpoint, if it has written one, is kept. "
        f"Lower the learning rate (rate) or look for extreme values in the data."
    )


def drift(values: Sequence[float]) -> float:
    """Return how far the mean of the newer half lies from the mean of the older half."""
    half = len(values) // 2
    return abs(sum(values[-half:]) - sum(values[:half])) / half


def settled(
    etas: Sequence[Sequence[float]],
    evidences: Sequence[float],
    window: int,
    eta_tolerance: float,
    evidence_tolerance: float,
) -> bool:
    """Return whether every width and the evidence have stopped to drift."""
    if window < 2 or len(etas) < window or 0 < len(evidences) < window:
        return False
    tracks = zip(*etas[-window:], strict=True)
    at_rest = all(drift(track) <= eta_tolerance for track in tracks)
    return at_rest and (not evidences or drift(evidences[-window:]) <= evidence_tolerance)
