"""Forecasts: the arithmetic against a clock that ticks as told, and the truth of a real run within a factor."""

import json
import time

import pytest

import augury
import augury.methods.forecast as forecasting
from augury.cli.console import Left, LiveBar, duration
from augury.config.learn import LearnConfig
from augury.curvature.tape import MAX_ROWS
from augury.evidence.refit import LaplaceRefit
from augury.methods.forecast import Costs, Remaining, climbs_of, forecast, peak_memory, steps_of, total_seconds
from augury.methods.prepare import prepare
from augury.methods.widths import usual_knots
from training_doubles import coordinates

QUICK = {"epochs": 6, "batch": 10, "samples": 2, "samples_eval": 2}

LEARNS = {"finish": 0.0, "epochs": 100, "batch": 20, "samples": 4, "samples_eval": 4}
"""Enough for the toy data to be learned: if they are not, there is nothing to scan."""


class Ticks:
    """Every look at it costs some time."""

    def __init__(self, tick=0.001):
        self.at, self.tick = 0.0, tick

    def __call__(self):
        self.at += self.tick
        return self.at


def test_the_time_is_made_of_steps_climbs_the_end_and_scores():
    config = LearnConfig(epochs=10, batch=100, evidence_images=500, evidence_every=2, burn_in=2, evaluate_every=5)
    costs = Costs(step=0.5, climb=3.0, knot=2.0, widths=6, score=0.01)
    climbs = climbs_of(config)
    assert climbs == 4 and steps_of(config, 1050) == 11
    expected = 10 * 10 * 0.5 + climbs * 3.0 + 2.0 * 6 * usual_knots(6) + 3.0 * 2 + (2 * 200 + 2 * 200) * 0.01
    assert total_seconds(config, 1000, 200, costs) == pytest.approx(expected)
    without = total_seconds(config, 1000, 200, Costs(0.5, 0.0, 0.0, 0, 0.01))
    assert without == pytest.approx(10 * 10 * 0.5 + 8.0)


def test_what_is_left_of_a_run_counts_the_intervals_until_they_are_done():
    """Steps of 2 s, evidence steps of 30 s, knots of 10 s, by a clock that only moves when told."""
    now, said = [0.0], []
    heard = augury.Progress()
    heard.remaining = said.append
    settings = {**QUICK, "evidence_every": 1, "burn_in": 1, "evidence_images": 10, "finish": 0.5}
    ready = prepare(coordinates(20), "toy_mlp", "lila", None, settings)
    left = Remaining(ready, heard, lambda: now[0])
    knots, test, usual = usual_knots(1), len(ready.data.x_test), forecasting.KNOT * 30.0

    def after(seconds, call, *words):
        now[0] += seconds
        call(*words)
        return said[-1] if said else None

    def epoch(k, evidence=30.0):
        after(2.0, left.step, k, 1, 0.1)
        after(2.0, left.step, k, 2, 0.1)
        return after(evidence, left.epoch, {"epoch": k, "loss": 0.1, **({"log_evidence": -1.0} if evidence else {})})

    assert after(0.0, left.step, 1, 1, 0.1) is None and after(2.0, left.step, 1, 2, 0.1) > 5 * 2 * 2.0
    epoch(2)
    scores = test * 2.0 / 10 / 2 * 2 / 3  # a forward pass is a third of a training pass, and both have two views
    end = usual * knots + 30.0 * 20 / 10
    assert epoch(3) == pytest.approx(3 * 2 * 2.0 + end + scores)
    assert after(1.0, left.stage, "intervals of the widths") == pytest.approx(12.0 + end + scores)
    knot = (40.0 + forecasting.USUAL * usual) / (4 + forecasting.USUAL)
    expected = 12.0 + knot * (knots - 4) + 60.0 + scores
    assert after(40.0, left.stage, "intervals of the widths", 4, knots) == pytest.approx(expected)
    assert epoch(4, 0.0) == pytest.approx(8.0 + scores)
    assert epoch(6, 0.0) == after(0.0, left.stage, "test set") == 0.0


def test_steps_and_climbs_are_timed_by_the_clock_if_there_is_an_evidence():
    found = forecast(coordinates(20), "toy_mlp", clock=Ticks(), **QUICK)
    expected = (0.001, 0.001, 0.001, 1, 0.001 / 20)
    for cost, value in zip(found.costs.to_json().values(), expected, strict=True):
        assert cost == pytest.approx(value)
    assert found.steps == 2 and found.climbs == climbs_of(LearnConfig.for_method("lila", **QUICK))
    assert found.weights == 2 * 50 + 50 + 50 * 2 + 2 and found.widths == ("rotation",)
    found = forecast(coordinates(20), "toy_mlp", "augerino", clock=Ticks(), **QUICK)
    assert found.costs.climb == 0.0 and found.climbs == 0


def test_costly_inputs_are_timed_on_fewer_and_scaled_up():
    # A tick of 100 s says that 4 inputs take 100 s: then 2 inputs are timed, not 10, and the step is 5 times as long.
    found = forecast(coordinates(20), "toy_mlp", clock=Ticks(100.0), **QUICK)
    assert found.costs.step == pytest.approx(100.0 * 10 / 2)
    config = LearnConfig.for_method("lila", **QUICK)
    images, steps, some = config.evidence_images, config.eta_steps, config.eta_images
    at_once = MAX_ROWS // (config.evidence_samples or config.samples)
    timed = min(images, at_once) + min(some, at_once)  # the factors and one step, each one pass: the peak of memory
    assert found.costs.climb == pytest.approx(100.0 * (images + steps * some) / timed)
    assert found.costs.score == pytest.approx(100.0)


def test_a_real_run_takes_about_what_was_said_and_its_bar_counts_the_intervals():
    stages, left = [], []

    class Heard(augury.Progress):
        def remaining(self, seconds):
            left.append((len(stages), seconds))

        def ahead(self, names):
            stages.append(tuple(names))

        def stage(self, what, done=0, total=0):
            stages.append((what, done, total))

    data, clock = augury.load("toy", variant="rotated", subset=100), time.process_time
    for method in ("lila", "augerino"):
        augury.learn(data, method=method, **{**LEARNS, "epochs": 1})  # loads what must be loaded
        said = forecast(data, method=method, clock=clock, **LEARNS).seconds
        started = clock()
        augury.learn(data, method=method, callbacks=Heard() if method == "lila" else (), **LEARNS)
        took = clock() - started
        assert took / 4 < said < 4 * took
    ahead, *intervals, last = stages
    assert ahead == ("intervals of the widths", "test set")
    assert last == ("test set", 0, 0) and {what for what, _, _ in intervals} == {"intervals of the widths"}
    done = [d for _, d, _ in intervals]
    assert done == sorted(done) and 3 <= done[-1] <= intervals[-1][2] == usual_knots(1)
    before = [seconds for stage, seconds in left if stage == 1]  # none of the stages that follow has begun
    assert before[0] > before[-1] > left[-1][1]  # the last: only the test set is left


def test_the_bar_says_what_will_follow_and_is_full_when_an_epoch_has_ended():
    bar = LiveBar(compares=True)
    bar.ahead(["intervals of the widths", "test set"])
    bar.start("lila", 2, 2, 0, {})
    shown = Left()
    assert shown.render(bar.bar.tasks[0]).plain == "-:--:--"
    bar.remaining(90.0)
    bar.bar.tasks[0]._get_time = lambda: bar.bar.tasks[0].fields["end"] - 65.2
    assert bar.below.plain == "then: intervals of the widths, test set, plain to compare"
    bar.stage("intervals of the widths", 3, 14)
    assert bar.below.plain == "then: test set, plain to compare"
    bar.step(2, 2, 0.5)
    assert [task.finished for task in bar.bar.tasks] == [False, True]  # evidence and scores may follow the last step
    bar.epoch({"epoch": 2, "loss": 0.5, "widths": {}})
    assert shown.render(bar.bar.tasks[0]).plain == "0:01:05"  # not 0, for the rest is still to come
    assert bar.bar.finished and bar.below.plain == "then: test set, plain to compare\nloss 0.500"
    bar.stage("test set")
    bar.stop()
    assert bar.below.plain == "loss 0.500"
    baseline = bar.for_baseline()
    baseline.ahead(["evidence"])
    baseline.start("plain", 1, 2, 0, {})
    assert baseline.below.plain == "then: evidence" and baseline.said and not bar.said  # the next seed's bar
    baseline.stop()


def test_memory_is_that_of_the_process_and_durations_are_written_as_a_person_would():
    before = peak_memory("cpu")
    held = bytearray(200 * 2**20)
    assert before > 50 * 2**20 and peak_memory("cpu") >= min(before, len(held))
    assert [duration(s) for s in (0.2, 41.6, 700.0, 12_600.0)] == ["1 s", "42 s", "12 min", "3.5 h"]


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(augury, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["learn", "toy", "--epochs", "3", "-S", "2", "--dry-run"]
    code, out, _ = augury(*command)
    assert code == 0 and list(tmp_path.iterdir()) == []
    for text in ("lila", "plain", "toy_mlp, 252 weights", "3 epochs of 2 steps", "about", "runs/toy-lila"):
        assert text in out
    assert "MB" in out or "GB" in out  # of the whole process, which has run other tests
    found = json.loads(augury(*command, "--json", "-q")[1])
    assert [run["method"] for run in found["runs"]] == ["lila", "plain"] and found["run"] == "runs/toy-lila"
    assert found["seconds"] == pytest.approx(sum(run["seconds"] for run in found["runs"]))
    assert len(json.loads(augury(*command, "--json", "-q", "--no-baseline")[1])["runs"]) == 1


def test_the_end_of_a_run_is_part_of_the_memory(monkeypatch):
    """Intervals and scores have the peak: one knot of a profile, and as many test inputs as are scored at once."""
    asked, knot, scored = [], LaplaceRefit.knot, forecasting.outputs_of
    monkeypatch.setattr(LaplaceRefit, "knot", lambda self: asked.append(len(self.x)) or knot(self))
    monkeypatch.setattr(forecasting, "outputs_of", lambda model, x: asked.append(len(x)) or scored(model, x))
    forecast(coordinates(20), "toy_mlp", **QUICK)
    assert asked == [20, 20, 20]  # scores to be timed, a knot, scores at once
