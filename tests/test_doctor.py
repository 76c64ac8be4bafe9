"""The doctor: what is planted is known, the verdict follows from it, and the command says it by word and exit code."""

import json
import math

import numpy as np
import pytest
import torch

import augury
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.methods.doctor import EPOCHS, epochs_within, judge, plant, recover
from augury.records.results import Width
from refusal import refused


def data(kind, shape, task="classification", N=40):
    x = torch.rand(N, *shape, generator=generator(0))
    y = torch.arange(N) % 2 if task == "classification" else torch.rand(N, 1, generator=generator(1))
    return Dataset(x[:-8], y[:-8], x[-8:], y[-8:], kind=kind, task=task)


PLANTINGS = {
    "image": (data("image", (1, 12, 12)), None, {"rotation": 180.0}),
    "scaled": (data("image", (1, 12, 12)), "scaled", {"scale_x": 2.0, "scale_y": 2.0}),
    "regression": (data("image", (1, 12, 12), "regression"), None, {"rotation": 180.0}),
    "signal": (data("signal", (1, 16)), None, {"time_shift": 4.0}),
    "amplitude": (data("signal", (1, 16)), "amplitude", {"amplitude": math.exp(0.5)}),
    "points": (data("points", (9, 3)), None, {"rotation_z": 180.0}),
    "coordinates": (data("coordinates", (2,)), None, {"rotation": 180.0}),
}


@pytest.mark.parametrize("case", PLANTINGS)
def test_what_is_planted_moves_the_inputs_and_is_written_down(case):
    given, what, truth = PLANTINGS[case]
    planted = plant(given, what, seed=1)
    assert planted.planted == pytest.approx(truth)
    for part in ("x_train", "x_test"):
        assert not torch.allclose(getattr(planted, part), getattr(given, part))
    assert torch.equal(planted.y_train, given.y_train)
    assert torch.equal(plant(given, what, seed=1).x_train, planted.x_train)


def test_planted_points_are_turned_only_and_features_not_at_all():
    given, what, _ = PLANTINGS["points"]
    planted = plant(given, what)
    assert torch.allclose(planted.x_train.norm(dim=-1), given.x_train.norm(dim=-1), atol=1e-5)
    assert torch.allclose(planted.x_train[..., 2], given.x_train[..., 2], atol=1e-5)
    refused("kind 'features'", plant, data("features", (7,)), None)


def turned(value):
    return {"rotation": Width(value, "deg")}


@pytest.mark.parametrize(
    ("learned", "control", "verdict"),
    [
        (90.0, None, "recovered"),
        (61.0, None, "recovered"),
        (119.0, None, "recovered"),
        (40.0, None, "partly recovered"),
        (130.0, None, "partly recovered"),
        (20.0, None, "not recovered"),
        (90.0, 5.0, "recovered"),
        (45.0, 40.0, "not recovered"),
        (90.0, 80.0, "found without planting"),
    ],
)
def test_the_verdict_follows_from_what_was_learned(learned, control, verdict):
    beside = None if control is None else turned(control)
    found, why, advice = judge({"rotation": 90.0}, turned(learned), beside)
    assert found == verdict
    assert f"90 deg planted, {learned:.3g} deg learned" in why and advice


def test_factors_are_compared_by_their_logarithms_and_all_must_be_found():
    truth = {"scale_x": 4.0}
    assert judge(truth, {"scale_x": Width(2.0, "factor")})[0] == "partly recovered"
    assert judge(truth, {"scale_x": Width(2.6, "factor")})[0] == "recovered"
    assert judge(truth, {"scale_x": Width(1.0, "factor")})[0] == "not recovered"
    truth = {"scale_x": 2.0, "scale_y": 2.0}
    one = {"scale_x": Width(2.0, "factor"), "scale_y": Width(1.0, "factor")}
    assert judge(truth, one)[0] == "not recovered"


def rings():
    """Two rings, seen from one side only: the label is the radius, whatever the angle."""
    rng = np.random.default_rng(0)
    angle, y = rng.uniform(-0.3, 0.3, 200), np.arange(200) % 2
    return ((1 + y) * np.stack([np.cos(angle), np.sin(angle)])).T.astype(np.float32), y


def test_a_planted_rotation_is_recovered_and_one_that_cannot_be_learned_is_not():
    x, y = rings()
    points = augury.load((x, y), kind="coordinates")
    found = recover(points, samples=4, batch=50, epochs=30, rate=0.02)
    assert found.verdict == "recovered" and found.planted == {"rotation": 180.0} and found.epochs == 30
    hopeless = recover(augury.load("toy"), samples=2, batch=50, epochs=20)  # turned, its classes are the same
    assert hopeless.verdict == "not recovered" and "--epochs" in hopeless.advice


def test_a_control_learns_from_the_data_as_they_are_what_was_planted():
    found = recover(data("coordinates", (2,)), control=True, samples=2, epochs=1)
    assert set(found.control) == {"rotation"} and "without planting" in found.why
    with pytest.raises(InputError, match="rotation was planted"):
        recover(data("coordinates", (2,)), samples=2, epochs=1, generators=("scale",))


@pytest.fixture
def command(augury):
    return lambda *words: augury("doctor", *words)


def test_without_data_it_shows_the_environment(command):
    code, out, _ = command()
    assert code == 0 and f"torch {torch.__version__.split('+')[0]}" in out
    assert "cores" in out and "mnist5k" in out
    facts = json.loads(command("--json")[1])
    there = facts["environment"]
    assert facts["recovery"] is None and there["augury"] == augury.__version__
    assert there["memory_bytes"] > 2**28 and there["data_sets"]["toy"] == "built in"


def test_the_answer_is_in_words_in_json_and_in_the_exit_code(command, tmp_path):
    x, y = rings()
    np.savez(tmp_path / "rings.npz", x=x, y=y)
    code, out, _ = command(tmp_path / "rings.npz", "--epochs", 150, "-S", 4, "-q")
    assert code == 0 and "recovered by lila with toy_mlp" in out
    assert "180.0 deg" not in out.partition("rotation:")[0]
    x = np.random.default_rng(0).random((30, 8, 8), dtype=np.float32)
    np.savez(tmp_path / "noise.npz", x=x, y=np.arange(30) % 2)
    code, out, _ = command(tmp_path / "noise.npz", "--model", "mlp5", "--epochs", 1, "-S", 2, "--json", "-q")
    found = json.loads(out)["recovery"]
    assert code == 3 and found["verdict"] == "not recovered" and found["planted"] == {"rotation": 180.0}


def test_a_budget_of_seconds_becomes_epochs(command):
    points = data("coordinates", (2,))
    asked = {"samples": 2, "batch": 8, "method": "augerino", "epochs": 15}
    assert epochs_within(points, 1e-9, 1, **asked) == EPOCHS[0]
    assert epochs_within(points, 1e9, 2, **asked) == EPOCHS[1]
    code, out, _ = command("toy", "--seconds", 0.001, "--json", "-q", "-S", 2)
    assert code in (0, 3) and json.loads(out)["recovery"]["epochs"] == EPOCHS[0]
