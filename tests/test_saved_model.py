"""One saved model: every kind comes back, damage is refused, files of version 0.1 are read."""

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import augury
from adapt_doubles import extractor
from augury.core.errors import AuguryError, RunError
from augury.core.rng import generator
from augury.models.networks import build
from augury.records.saved import SavedModel, read_saved
from augury.report.page import write_report
from augury.training.checkpoint import digest, load_tensors, save_tensors
from augury.training.run_folder import model_file, read_run
from augury.training.saved_model import describe_extractor, read_tensors, save_model
from fuzzing import mutated
from refusal import refused

OLD = Path(__file__).parent / "data" / "runs_0_1"
TOY = SavedModel("network", "toy_mlp", [2], 2, "coordinates")
OUTPUTS = json.loads((OLD / "outputs.json").read_text())


def tiny():
    """The network of one's own of the old run weight_tied."""
    parts = torch.nn.Flatten(), torch.nn.Linear(64, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)
    return torch.nn.Sequential(*parts)


@pytest.mark.parametrize("name", OUTPUTS)
def test_models_of_version_0_1_give_the_outputs_that_they_gave(name):
    model = augury.load_model(OLD / name, tiny() if name == "weight_tied" else None)
    inputs = [torch.tensor(OUTPUTS[name][key]) for key in ("x", "i") if key in OUTPUTS[name]]
    assert torch.allclose(model(*inputs), torch.tensor(OUTPUTS[name]["y"]), atol=1e-6)
    assert not model.training


def test_run_folders_of_version_0_1_are_read_and_reported(tmp_path):
    folders = [shutil.copytree(OLD / name, tmp_path / name) for name in OUTPUTS]
    assert [type(read_run(f)).__name__ for f in folders] == ["Run"] * 4 + ["Pretrained", "Adapted"]
    assert list(read_run(OLD / "lila").invariance.widths) == ["rotation", "scale_x", "scale_y"]
    for folder in folders[:3] + folders[4:]:
        assert write_report(folder).is_file()
    assert write_report(*folders, out=tmp_path / "all.html").is_file()
    assert augury.Policy.read(OLD / "lila").kind == "coordinates"


def file_of(tmp_path, model, saved):
    save_model(tmp_path / "model.safetensors", model, saved)
    return tmp_path / "model.safetensors"


def test_a_model_that_was_changed_or_cut_short_is_refused(tmp_path):
    net = build("toy_mlp", (2,), 2, generator(0))
    file = file_of(tmp_path, net, TOY)
    whole = file.read_bytes()
    x = torch.rand(3, 2)
    assert torch.equal(augury.load_model(tmp_path)(x), net(x)) and read_saved(file).network == "toy_mlp"
    changed = bytearray(whole)
    changed[-3] ^= 1
    for damaged, says in [
        (bytes(changed), "was changed"),
        (whole.replace(b"toy_mlp", b"toy_mlq"), "was changed"),
        (whole[:-100], "cut short"),
        (whole[:40], "cut short"),
        (b"", "cut short"),
    ]:
        file.write_bytes(damaged)
        refused(says, augury.load_model, file, error=RunError)
    file.write_bytes(whole)
    save_file(load_file(file), file, {"augury": TOY.dumps()})
    refused("checksum", augury.load_model, file, error=RunError)
    save_file(load_file(file), file)
    refused("does not say how to build it", augury.load_model, file, error=RunError)


NONSENSE = {"kind": "oracle", "n_outputs": 0, "input_shape": [2.5], "samples": True, "groups": 3, "task": "x"}


@pytest.mark.parametrize("field", NONSENSE)
def test_a_record_that_says_nonsense_is_refused(tmp_path, field):
    values = {**TOY.to_json(), field: NONSENSE[field]}
    save_file({"x": torch.zeros(1)}, tmp_path / "m.safetensors", {"augury": json.dumps(values)})
    for read in (augury.load_model, read_saved):
        refused(f"SavedModel.{field}", read, tmp_path / "m.safetensors", error=RunError)


def test_a_network_of_ones_own_must_be_given_and_must_fit(tmp_path):
    file = file_of(tmp_path, tiny(), SavedModel("network", "custom", [1, 8, 8], 2))
    refused("network of your own", augury.load_model, file)
    refused("does not fit", augury.load_model, file, torch.nn.Linear(2, 2))
    assert isinstance(augury.load_model(file, tiny()), torch.nn.Sequential)


def test_where_there_is_no_model_the_reason_is_said(tmp_path):
    for file, says in (("audit.json", "holds an audit"), ("config.json", "has not ended"), ("x", "holds no run")):
        folder = tmp_path / file.partition(".")[0]
        folder.mkdir()
        (folder / file).write_text("{}")
        refused(says, model_file, folder)
    refused("no such file or folder", augury.load_model, tmp_path / "none")


def test_an_extractor_keeps_its_groups(tmp_path):
    made = extractor()
    again = augury.load_model(file_of(tmp_path, made, describe_extractor(made)))
    x, i = torch.rand(3, 2, 8, 8), torch.tensor([0.3, 0.9])
    assert again.groups == made.groups and torch.equal(again(x, i), made(x, i))


@pytest.mark.parametrize("name", ["lila", "amortize", "adapt"])
def test_a_crafted_header_gives_a_model_or_our_error(name, tmp_path):
    rng = random.Random(0)
    saved, tensors = read_tensors(model_file(OLD / name))
    for _ in range(40):
        text = json.dumps(mutated(saved.to_json(), rng))
        save_file(tensors, tmp_path / "m.safetensors", {"augury": text, "sha256": digest(text, tensors)})
        try:
            augury.load_model(tmp_path / "m.safetensors")
        except AuguryError as error:
            assert len(str(error)) > 20


def test_two_files_of_the_same_model_are_equal_byte_for_byte(tmp_path):
    tensors = {"b": torch.ones(2), "a": torch.zeros(3, dtype=torch.int64)}
    for k in range(8):
        save_tensors(tmp_path / str(k), tensors, {"sha256": "0", "augury": '{"é": "\\n\u0001"}', "x": ""})
    assert len({(tmp_path / str(k)).read_bytes() for k in range(8)}) == 1
    found, metadata = load_tensors(tmp_path / "0")
    assert metadata["augury"] == '{"é": "\\n\u0001"}' and torch.equal(found["a"], tensors["a"])
