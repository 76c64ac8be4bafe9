"""`augury adapt` as a user meets it."""

import json
import signal

import numpy as np
import pytest
import torch

from adapt_doubles import extractor, task
from augury.training.saved_model import describe_extractor, load_model, save_model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapt")
    save_model(folder / "e.safetensors", extractor(), describe_extractor(extractor()))
    for kind in ("classification", "regression"):
        data = task(0, N=160, kind=kind)
        parts = {n: getattr(data, n).numpy() for n in ("x_train", "y_train", "x_test", "y_test")}
        np.savez(folder / f"{kind}.npz", **parts)
        np.savez(folder / f"{kind}_alone.npz", x=parts["x_train"], y=parts["y_train"])
    return folder


def test_json_holds_descriptor_score_bound_and_seconds(files, augury, tmp_path):
    code, out, err = augury(
        "adapt", files / "e.safetensors", files / "classification.npz", "--json", "--run", tmp_path / "a"
    )
    found = json.loads(out)
    assert code == 0, err
    assert found["descriptor"]["right"] > 0.75 and found["descriptor"]["left"] < 0.75
    assert found["score"] > 0.8 and found["scored_on"] == "test" and found["seconds"] > 0
    bound = found["bound"]
    assert abs(bound["total"] - bound["risk"] - bound["complexity"] - bound["choice"]) < 1e-9
    assert json.loads((tmp_path / "a" / "adaptation.json").read_text())["score"] == found["score"]
    assert load_model(tmp_path / "a")(torch.rand(3, 2, 8, 8)).shape == (3, 2)


def test_a_signal_while_the_report_is_written_is_a_message(files, augury, tmp_path, monkeypatch):
    def stopped(folder):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("augury.cli.console.leave_report", stopped)
    words = ("--levels", 2, "--run", tmp_path / "a")
    code, out, err = augury("adapt", files / "e.safetensors", files / "classification.npz", *words)
    assert code == 143 and not out and "SIGTERM" in err


def test_bars_words_head_scores_and_bound_for_a_person(files, augury):
    code, out, err = augury("adapt", files / "e.safetensors", files / "classification.npz", "--levels", 2)
    assert code == 0, err
    assert "████████████████████████ 1.00 invariant" in out.replace("  ", " ").replace("  ", " ")
    assert "░░░░░░░░░░░░░░░░░░░░░░░░" in out
    assert "This task: invariant to right; sensitive to left." in out
    for words in ("64 features to 2 classes", "held-out estimate", "accuracy", "together", "2 levels"):
        assert words in out


def test_a_difference_of_a_few_nats_is_undecided(augury, files, tmp_path):
    data = task(0, N=40)
    np.savez(tmp_path / "few.npz", x=data.x_train.numpy(), y=data.y_train.numpy())
    words = ("adapt", files / "e.safetensors", tmp_path / "few.npz", "--test-fraction", 0, "--run", tmp_path / "run")
    code, out, err = augury(*words)
    assert code == 0 and "This task: undecided about left, right." in out, err
    margins = json.loads((tmp_path / "run" / "adaptation.json").read_text())["margins"]
    assert all(0 < margin < 7.7 for margin in margins.values())
    assert f"undecided: {margins['left']:.1f} nats" in out
    assert "undecided about left, right" in (tmp_path / "run" / "report.html").read_text()


def test_regression_without_a_test_set_is_scored_by_what_was_left_out(files, augury):
    arguments = ["adapt", files / "e.safetensors", files / "regression_alone.npz", "--test-fraction", 0]
    code, out, err = augury(*arguments, "--descriptor", "left=0,right=1", "--json")
    found = json.loads(out)
    assert code == 0 and found["score_name"] == "R^2" and found["scored_on"] == "held out", err
    assert found["criterion"] == "given" and 0.5 < found["score"] < found["train_score"] <= 1
    code, out, _ = augury(*arguments, "--quiet")
    assert code == 0 and "(held out)" in out and "R^2" in out
