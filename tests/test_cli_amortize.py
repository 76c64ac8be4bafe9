"""`augury amortize` as a user meets it."""

import json
from functools import partial

import numpy as np
import pytest

from augury.methods.hyper.adapt import load_extractor

QUICK = ["--epochs", "1", "--batch", "8", "--encoder", "conv16"]


@pytest.fixture
def npz(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).random((20, 12, 12, 3), dtype=np.float32))
    return tmp_path / "x.npz"


@pytest.fixture
def augury(augury):
    return partial(augury, "amortize")


def test_it_leaves_an_extractor_says_what_each_entry_does_and_leaves_a_taken_folder_alone(npz, augury, tmp_path):
    code, out, err = augury(npz, "--groups", "rotation,look=jitter+blur", *QUICK, "--out", "a")
    assert code == 0 and "contrastive" in err
    assert (
        "rotation:90deg" in out
        and "jitter:1.5x+blur:1.5px" in out
        and "a/model.safetensors, its report a/report.html" in out
    )
    files = {"config.json", "metrics.jsonl", "checkpoint", "model.safetensors", "command.json", "report.html"}
    assert {path.name for path in (tmp_path / "a").iterdir()} == files
    assert load_extractor(tmp_path / "a").groups == ("rotation", "look")
    code, _, err = augury(npz, "-g", "flip", *QUICK, "--out", "a", "-q")
    assert code == 2 and "already exists" in err
    assert augury(npz, "-g", "flip", *QUICK, "--out", "a", "-q", "--overwrite")[0] == 0
    assert augury(npz, "-g", "flip", *QUICK, "--out", "a", "-q", "--resume")[0] == 0


def test_json_is_one_object_and_nothing_else(npz, augury):
    code, out, err = augury(npz, "-g", "flip", *QUICK, "--json", "-q", "--set", "temperature=0.2")
    result = json.loads(out)
    assert code == 0 and err == ""
    assert result["extractor"] == "runs/x-extractor/model.safetensors" and result["groups"] == ["flip"]
    assert set(result["invariance"]["flip"]) == {"at_0", "at_1", "random_at_0", "random_at_1"}
    assert result["images"] == 20 and result["epochs"] == 1 and result["skipped"] == 0
    code, out, _ = augury(npz, "-g", "flip", *QUICK, "--json", "-q")
    assert json.loads(out)["extractor"] == "runs/x-extractor-2/model.safetensors"


def test_coloured_digits_by_several_tasks(augury, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "mnist5k -m multitask --subset 40 --epochs 1 --json -q --set shared=true"
    code, out, _ = augury(*words.split())
    result = json.loads(out)
    assert code == 0 and result["method"] == "multitask, shared" and result["features"] == 2304
    assert result["transformations"] == {"rotation": "rotation:90deg", "color": "channels"}
