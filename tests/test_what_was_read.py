"""Every command that reads data says in one line what it read, and refuses what could be read in two ways."""

import re

import numpy as np
import pytest
import torch
from torch import nn

from adapt_doubles import extractor, task
from augury.auditing.audit import audit
from augury.core.rng import generator
from augury.models.networks import build
from augury.records.saved import SavedModel
from augury.training.saved_model import describe_extractor, save_model
from data_doubles import image_folder, picture
from refusal import refused

LINE = "images, 1 x 8 x 8, 2 classes: cat, dog; scaled to 0..1"
QUICK = ("--epochs", "1", "--model", "mlp", "-m", "plain")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image_folder(tmp_path / "pets", {"cat": 10, "dog": 10})
    return tmp_path / "pets"


@pytest.fixture
def model(tmp_path):
    saved = SavedModel("network", "mlp5", [1, 8, 8], 2)
    save_model(tmp_path / "model.safetensors", build("mlp5", (1, 8, 8), 2, generator(0)), saved)
    return tmp_path / "model.safetensors"


def arrays(*shape, n=40, **more):
    return {"x": np.random.default_rng(0).random((n, *shape), dtype=np.float32), "y": np.arange(n) % 2} | more


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_learn_says_what_was_read(augury, folder, more):
    code, out, err = augury("learn", folder, *QUICK, *more)
    assert code == 0 and f"Read folder {folder}: 16 + 4 {LINE}" in err and LINE not in out, err
    assert LINE not in augury("learn", folder, *QUICK, *more, "--quiet")[2]


def test_doctor_says_what_was_read(augury, folder, short_runs):
    _, _, err = augury("doctor", folder, "--epochs", 1, "--model", "mlp")
    assert f"Read folder {folder}: 16 + 4 {LINE}" in err


def test_audit_says_what_was_read(augury, folder, model):
    code, _, err = augury("audit", model, folder, "-g", "C4", "--drift", folder, "--no-corruptions")
    assert code == 0 and err.count(f"Read folder {folder}: 16 + 4 {LINE}") == 2


def test_adapt_says_what_was_read(augury, tmp_path):
    save_model(tmp_path / "e.safetensors", extractor(), describe_extractor(extractor()))
    data = task(0, N=40)
    np.savez(tmp_path / "t.npz", x=data.x_train.numpy(), y=data.y_train.numpy())
    code, _, err = augury("adapt", tmp_path / "e.safetensors", tmp_path / "t.npz", "--descriptor", "left=0,right=1")
    assert code == 0 and f"Read file {tmp_path / 't.npz'}: 32 + 8 images, 2 x 8 x 8, 2 classes: 0, 1; values" in err


def test_amortize_says_what_was_read(augury, folder):
    words = ("amortize", folder, "--groups", "flip_x", "--epochs", 1, "--batch", 10, "--encoder", "conv16")
    code, _, err = augury(*words)
    assert code == 0 and f"Read folder {folder}: 20 images, 1 x 8 x 8; scaled to 0..1; no labels" in err, err
    assert "contrastive" in err and "evidence" not in err and "test set" not in err
    code, out, _ = augury("report", "runs/pets-extractor")
    page = (folder.parent / out.strip()).read_text()
    assert "contrastive" in page and "has not ended" not in page and "None" not in page and "targets" not in page


@pytest.mark.parametrize("names", [("Train", "Test"), ("training", "testing"), ("train", "val")])
def test_splits_are_no_classes(augury, tmp_path, names):
    for part, n in zip(names, (8, 3), strict=True):
        image_folder(tmp_path / "x" / part, {"cat": n, "dog": n})
    code, _, err = augury("learn", tmp_path / "x", *QUICK, "--run", tmp_path / "run")
    assert code == 0 and f"16 + 6 {LINE}" in err
    assert ("val as test set" in err) is (names[1] == "val")


ASKED = {
    "signals [N, T, C]": (arrays(128, 6), "images .* signals of 128 steps in 6 channels", "signal", "6 channels x 128"),
    "clouds [N, P, 3]": (arrays(50, 3), "clouds of 50 points .* signals of 50 steps", "points", "point clouds, 50 x 3"),
    "images [N, H, W]": (arrays(12, 20), "images of 12 x 20 pixels .* signals", "image", "images, 1 x 12 x 20"),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_could_be_two_things_is_asked_about(augury, tmp_path, what):
    held, message, kind, line = ASKED[what]
    np.savez(tmp_path / "x.npz", **held)
    words = ("learn", tmp_path / "x.npz", "--dry-run", "-m", "plain")
    code, _, err = augury(*words)
    assert code == 2 and "--kind" in err
    assert re.search(message, " ".join(err.split()))
    code, _, err = augury(*words, "--kind", kind)
    assert code == 0 and line in err


def test_many_bands_one_hot_labels_and_twelve_bits(augury, tmp_path):
    np.savez(tmp_path / "bands.npz", **arrays(32, 32, 12, n=10))
    assert (
        "8 + 2 images, 12 x 32 x 32 (channels were last)"
        in augury("learn", tmp_path / "bands.npz", "--dry-run", "-m", "plain", "--model", "mlp")[2]
    )
    np.savez(tmp_path / "hot.npz", **arrays(8, 8, y=np.eye(2, dtype=np.float32)[np.arange(40) % 2]))
    code, _, err = augury("learn", tmp_path / "hot.npz", "--dry-run")
    assert code == 2 and "look one-hot" in err
    twelve = np.random.default_rng(0).integers(0, 4096, (40, 8, 8)).astype(np.uint16)
    np.savez(tmp_path / "twelve.npz", **arrays(8, 8, x=twelve))
    code, _, err = augury("learn", tmp_path / "twelve.npz", "--dry-run")
    assert code == 2 and "12 bits" in err


def test_arrays_have_a_size_too(augury, tmp_path):
    np.savez(tmp_path / "x.npz", **arrays(20, 20))
    words = ("--dry-run", "-m", "plain", "--model", "mlp", "--size", 8)
    code, _, err = augury("learn", tmp_path / "x.npz", *words)
    assert code == 0 and "1 x 8 x 8 (resized)" in err


def test_an_audit_takes_a_folder_without_labels(augury, tmp_path, model):
    (tmp_path / "photos").mkdir()
    for i in range(6):
        picture(8, 8, "L", value=40 * i).save(tmp_path / "photos" / f"{i}.png")
    code, out, err = augury("audit", model, tmp_path / "photos", "-g", "C4", "--run", tmp_path / "audit")
    assert code == 0 and "6 images, 1 x 8 x 8; scaled to 0..1; no labels" in err and "On 6 inputs of folder" in out


def test_an_audit_takes_arrays_without_labels(augury, tmp_path, model):
    np.savez(tmp_path / "x.npz", images=(arrays(8, 8)["x"] * 255).astype(np.uint8))
    code, _, err = augury("audit", model, tmp_path / "x.npz", "-g", "C4", "--run", tmp_path / "audit")
    assert code == 0 and "40 images, 1 x 8 x 8; scaled to 0..1; no labels" in err
    flat = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
    for data in (arrays(3, 8, 8)["x"], torch.rand(9, 3, 8, 8).double(), torch.randint(256, (9, 3, 8, 8))):
        net = flat.double() if isinstance(data, torch.Tensor) and data.dtype == torch.double else flat.float()
        found = audit(net, data, "C4", corruptions=False)
        assert found.images == len(data) and found.accuracy is None


def test_an_audit_asks_for_the_kind():
    x, net = torch.rand(9, 30, 3), nn.Sequential(nn.Flatten(), nn.Linear(90, 2))
    refused("kind='points'", audit, net, x, "rotation3d")
    assert audit(net, x, "rotation3d", kind="points", corruptions=False).images == 9
