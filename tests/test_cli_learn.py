"""`augury learn` as a user meets it: tables, JSON, run folders, and messages instead of tracebacks."""

import json
import re

import numpy as np
import pytest
from PIL import Image

import augury.methods.learn as learning
from augury.training.progress import Progress
from data_doubles import image_folder

pytestmark = pytest.mark.usefixtures("short_runs")
QUICK = ["--epochs", "2", "--samples", "2", "--batch", "8", "--set", "samples_eval=2", "--model", "mlp5"]
NAMES = ["translate_x", "translate_y", "rotation", "scale_x", "scale_y", "shear"]


def test_the_table_shows_every_width_and_both_accuracies(npz, augury, tmp_path):
    code, out, _ = augury("learn", npz, *QUICK, "--run", "a")
    assert code == 0
    for word in (*NAMES, "deg", "px", "plain", "lila"):
        assert word in out
    assert len(re.findall(r"\d+\.\d %", out)) == 2
    files = {"config.json", "metrics.jsonl", "checkpoint", "model.safetensors", "invariance.json", "views"}
    more = {"baseline", "report.html", "command.json"}
    assert {path.name for path in (tmp_path / "a").iterdir()} == files | more
    assert {path.name for path in (tmp_path / "a" / "baseline").iterdir()} == files


def test_json_is_one_object_and_nothing_else(npz, augury):
    code, out, err = augury("learn", npz, *QUICK, "--run", "a", "--json")
    result = json.loads(out)
    assert code == 0
    assert list(result["widths"]) == NAMES
    assert set(result["widths"]["rotation"]) == {"value", "unit", "low", "high", "verdict", "planted"}
    assert result["widths"]["rotation"]["unit"] == "deg" and result["widths"]["rotation"]["planted"] is None
    assert 0 <= result["test_accuracy"] <= 1 and result["log_evidence"] < 0
    assert result["log_evidence_without"] == result["baseline"]["log_evidence"]
    assert result["seconds"] > 0 and result["run"] == "a"
    assert 0 <= result["baseline"]["test_accuracy"] <= 1
    assert "lila" in err  # the bar is on standard error


def test_the_planted_truth_stands_beside_what_was_learned(augury, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ("learn", "mnist5k", "--variant", "rotated", "--subset", 40, *QUICK, "--no-baseline", "-q")
    assert json.loads(augury(*command, "--json")[1])["widths"]["rotation"]["planted"] == 180.0
    assert "180.0 deg" in augury(*command)[1]


def test_options_that_may_surprise_are_remarked(npz, augury):
    words = ("-g", "rotation,flip_x", "-w", "flip_x=0.5", "--test-fraction", 0.5, "--no-baseline")
    code, out, err = augury("learn", npz, *QUICK, "--epochs", 1, *words)
    assert code == 0 and "flip_x=0.5 means 0.5 per cent" in err and "planted" not in out
    assert "--test-fraction 0.5 has no effect" in err and "of their own, 10 examples" in err
    assert "intervals of the widths" in err and "test set" in err  # a line for each stage


def test_a_test_fraction_is_remarked_where_the_test_set_has_about_that_size(augury, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for part, n in (("train", 7), ("val", 3)):
        image_folder(tmp_path / "pets" / part, {"cat": n, "dog": n})
    quick = ("--model", "mlp", "-m", "plain", "--epochs", 1, "--test-fraction", 0.3)
    assert "--test-fraction 0.3 has no effect" in augury("learn", "pets", *quick)[2]
    assert "no effect" not in augury("learn", "pets/train", *quick)[2]


def test_no_baseline_and_widths_of_ones_own(npz, augury, tmp_path):
    _, out, _ = augury("learn", npz, *QUICK, "--run", "a", "--no-baseline", "--json")
    assert json.loads(out)["baseline"] is None and not (tmp_path / "a" / "baseline").exists()
    _, out, _ = augury("learn", npz, *QUICK, "--run", "b", "--method", "plain", "--json")
    assert json.loads(out)["baseline"] is None
    words = ("-m", "augmented", "-w", "rotation=30", "-g", "rotation", "--json")
    found = json.loads(augury("learn", npz, *QUICK, *words)[1])["widths"]["rotation"]
    assert found["value"] == pytest.approx(30.0) and found["verdict"] == "given"


def test_given_widths_are_not_said_to_be_what_the_labels_allow(npz, augury):
    quick = ("learn", npz, *QUICK, "--epochs", 1, "--no-baseline", "-g", "rotation,shear", "-m")
    out = augury(*quick, "augmented", "-w", "rotation=30")[1]
    assert "The widths that were given, plus or minus" in " ".join(out.split()) and "stay the same" not in out
    out = augury(*quick[:-4], "-m", "plain")[1]
    assert "no transformation at all" in out and "rotation" not in out


def test_runs_without_a_name_get_one_each(npz, augury):
    command = ("learn", npz, *QUICK, "--epochs", 1, "--json", "--no-baseline")
    folders = [json.loads(augury(*command)[1])["run"] for _ in range(2)]
    assert folders == ["runs/digits-lila", "runs/digits-lila-2"]


def test_an_existing_folder_is_refused_overwritten_or_resumed(npz, augury):
    command = ["learn", npz, *QUICK, "--run", "a", "--json", "-q"]
    _, out, err = augury(*command)
    first = json.loads(out)
    assert err == ""  # as --quiet asks
    code, out, err = augury(*command)
    assert code == 2 and out == "" and "--overwrite" in err and "--resume" in err
    for how in ("--overwrite", "--resume"):
        assert json.loads(augury(*command, how)[1])["widths"] == first["widths"]


def test_an_interrupted_run_says_how_to_go_on_and_goes_on_to_the_same(npz, augury, monkeypatch):
    command = ["learn", npz, *QUICK, "--set", "checkpoint_seconds=0", "--json", "-q"]
    whole = json.loads(augury(*command, "--run", "whole")[1])
    fit = learning.fit

    class Interrupter(Progress):
        def step(self, epoch, step, loss):
            if (epoch, step) == (2, 1):
                raise KeyboardInterrupt

    monkeypatch.setattr(learning, "fit", lambda *args: fit(*args[:4], Interrupter()))
    code, out, err = augury(*command, "--run", "a")
    assert code == 130 and out == "" and "--run a --resume" in err and "Traceback" not in err
    monkeypatch.setattr(learning, "fit", fit)
    code, out, _ = augury(*command, "--run", "a", "--resume")
    assert code == 0
    assert json.loads(out)["widths"] == whole["widths"]
    assert json.loads(out)["test_accuracy"] == whole["test_accuracy"]


def test_a_lost_loss_is_a_message(npz, augury):
    code, out, err = augury("learn", npz, *QUICK, "--run", "a", "--set", "rate=1e30", "--json")
    assert code == 2 and out == ""
    assert re.search(r"error: .*(nan|NaN|inf).*epoch 1", err) and "Traceback" not in err


def test_files_that_cannot_be_read_are_counted(augury, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for k in range(6):
            pixels = rng.integers(0, 255, (16, 16), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{k}.png")
    (tmp_path / "photos" / "cat" / "broken.png").write_bytes(b"no picture")
    code, _, err = augury("learn", "photos", *QUICK, "--json")
    assert code == 2 and "broken.png" in err
    code, out, err = augury("learn", "photos", *QUICK, "--json", "--skip-bad")
    assert code == 0 and json.loads(out)["skipped"] == 1 and "1 file" in err
