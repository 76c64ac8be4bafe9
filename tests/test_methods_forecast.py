"""Forecasts: the arithmetic against a clock that ticks as told, and the truth of a real run within a factor."""

import json
import time

import pytest

import augury
import augury.methods.forecast as forecasting
from augury.cli.console import duration
from augury.config.learn import LearnConfig
from augury.evidence.refit import LaplaceRefit
from augury.methods.forecast import Costs, climbs_of, forecast, peak_memory, steps_of, total_seconds
from training_doubles import coordinates

QUICK = {"epochs": 6, "batch": 10, "samples": 2, "samples_eval": 2}


class Ticks:
    """Every look at it costs a second."""

    def __init__(self):
        self.at = 0.0

    def __call__(self):
        self.at += 1.0
        return self.at


def test_the_time_is_made_of_steps_climbs_the_end_and_scores():
    config = LearnConfig(
        epochs=10, batch=100, evidence_images=500, evidence_every=2, burn_in=2, evaluate_every=5
    )
    costs = Costs(step=0.5, climb=3.0, widths=6, score=0.01)
    climbs = climbs_of(config)
    assert climbs == 4 and steps_of(config, 1050) == 11
    expected = 10 * 10 * 0.5 + climbs * 3.0 + 3.0 * (12 + 2) + (2 * 200 + 2 * 200) * 0.01
    assert total_seconds(config, 1000, 200, costs) == pytest.approx(expected)
    without = total_seconds(config, 1000, 200, Costs(0.5, 0.0, 0, 0.01))
    assert without == pytest.approx(10 * 10 * 0.5 + 8.0)


def test_steps_and_climbs_are_timed_by_the_clock_if_there_is_an_evidence():
    found = forecast(coordinates(20), "toy_mlp", clock=Ticks(), **QUICK)
    climbs_at_once = LearnConfig.for_method("lila", **QUICK).climbs(6)
    assert found.costs == Costs(1.0, 1.0 / climbs_at_once, 1, 1.0 / 20)
    assert found.steps == 2 and found.climbs == climbs_of(LearnConfig.for_method("lila", **QUICK))
    assert found.weights == 2 * 50 + 50 + 50 * 2 + 2 and found.widths == ("rotation",)
    found = forecast(coordinates(20), "toy_mlp", "augerino", clock=Ticks(), **QUICK)
    assert found.costs.climb == 0.0 and found.climbs == 0


def test_a_real_run_takes_about_what_was_said():
    data, clock = augury.load("mnist5k", subset=100), time.process_time
    settings = {"epochs": 3, "samples": 4, "samples_eval": 4}
    for method in ("lila", "augerino"):
        augury.learn(data, "mlp5", method, **{**settings, "epochs": 1})  # loads what must be loaded
        said = forecast(data, "mlp5", method, clock=clock, **settings).seconds
        started = clock()
        augury.learn(data, "mlp5", method, **settings)
        took = clock() - started
        assert took / 4 < said < 4 * took


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
    asked, knot, scored = [], LaplaceRefit.knot, forecasting.score
    monkeypatch.setattr(LaplaceRefit, "knot", lambda self: asked.append(len(self.x)) or knot(self))
    monkeypatch.setattr(
        forecasting, "score", lambda model, x, *rest: asked.append(len(x)) or scored(model, x, *rest)
    )
    forecast(coordinates(20), "toy_mlp", **QUICK)
    assert asked == [20, 20]
