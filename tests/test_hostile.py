"""Hostile data: never a confident invariance where there is none, never a traceback. The long run: `make hostile`."""

from dataclasses import replace
from unittest.mock import Mock

import pytest
from torch import nn

from augury.core.errors import AuguryError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.methods.learn import learn
from augury.models.layers import seeded
from benchmarks import hostile
from benchmarks.hostile import CASES, classes, duplicated, kept, oriented, permuted, two_per_class


def few(seed: int) -> Dataset:
    """60 pictures of three classes with 8 x 8 pixels."""
    data = classes(3, 8, seed)
    return replace(data, x_train=data.x_train.repeat(5, 1, 1, 1), y_train=data.y_train.repeat(5))


SMALL = {
    "permuted labels": lambda: permuted(few(0), 0),
    "constant images": lambda: replace(few(0), x_train=few(0).x_train * 0 + 0.5),
    "duplicated images": lambda: permuted(duplicated(few(0), 6), 0),
    "two images per class": lambda: two_per_class(few(0)),
    "300 classes": lambda: classes(30, 6, 0),  # 300 take minutes
    "left or right": lambda: oriented(few(0), 2, 0),
    "five bins": lambda: oriented(few(0), 5, 0),
    "rate 10": lambda: few(0),
}


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_called_invariant_that_is_not(case, monkeypatch):
    monkeypatch.setattr("augury.config.learn.CLIMBS", 6)  # far enough to go wrong
    settings = {
        "epochs": 2,
        "batch": 20,
        "evidence_below": 9.0,
        "generators": ("rotation",),
        **hostile.SETTINGS.get(case, {}),
    }
    data = SMALL[case]()
    rng, inputs = generator(0), data.x_train[0].numel()
    layers = seeded(nn.Linear, inputs, 16, rng=rng), nn.Tanh(), seeded(nn.Linear, 16, data.n_outputs, rng=rng)
    net = nn.Sequential(nn.Flatten(), *layers)
    try:
        found = learn(data, net, **settings).invariance
    except AuguryError as error:
        assert len(str(error)) > 40
        return
    assert found.widths["rotation"].verdict != "invariant"


def test_a_run_is_planned_once_for_all_seeds_and_made_once(monkeypatch, tmp_path, capsys):
    planned, made = [], []
    monkeypatch.setattr(hostile, "forecast", lambda data, model, **given: planned.append(given) or Mock(seconds=90.0))
    monkeypatch.setattr(hostile, "CASES", {"rate 10": few})

    def one(case, model, seed, steps):
        made.append(seed)
        return {"case": case, "model": model, "seed": seed, "steps": steps, "verdict": "unclear"}

    monkeypatch.setattr(hostile, "one", one)
    words = ["hostile", "--cases", "rate 10", "--models", "mlp", "--out", str(tmp_path / "a.json"), "--seeds"]
    for seeds, more in (("0-1", ["--plan"]), ("0-1", []), ("0-2", [])):
        monkeypatch.setattr("sys.argv", [*words, seeds, *more])
        hostile.main()
    assert made == [0, 1, 2] and len(planned) == 3 and planned[0]["rate"] == 10.0
    out = capsys.readouterr().out
    assert out.startswith("rate 10, mlp: about 90 s of the processor a run\n2 runs: about 3 min of the processor\n")
    assert out.endswith("rate 10: invariant in 0 of 3\n") and "0 of 0" not in out


def test_the_share_of_labels_that_a_width_keeps_is_known():
    assert kept(0.0, 2) == pytest.approx(1.0, abs=0.01)
    assert kept(60.0, 2) == pytest.approx(0.75, abs=0.01)  # 1 - E max(0, w u - a) for a, u uniform
    assert kept(12.0, 5) > kept(24.0, 5)


def test_oriented_pictures_are_turned_by_their_label():
    data, turned = few(0), oriented(few(0), 2, 3)
    assert set(turned.y_train.tolist()) == {0, 1} and turned.n_outputs == 2
    assert not turned.x_train.allclose(data.x_train)
