"""Checkpoints: a killed run continues to the same bits, and a damaged one says so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import training_doubles as doubles
from augury.core.errors import InputError, RunError
from augury.training.checkpoint import load_checkpoint, save_checkpoint
from augury.training.loop import fit
from augury.training.progress import Progress
from augury.training.run_folder import open_run
from refusal import refused
from training_doubles import ToyLearner, coordinates, same_bits, settings, without_time

EVIDENCES = [-5.0, -3.0, -4.0, -2.0, -6.0, -7.0]


def learner_for(kind: str) -> ToyLearner:
    return ToyLearner(EVIDENCES) if kind == "evidence" else ToyLearner(dropout=0.3)


@pytest.mark.parametrize("kind", ["evidence", "dropout"])
@pytest.mark.parametrize(("epoch", "step"), [(3, 1), (3, 3), (1, 2), (6, 3)])
def test_a_killed_run_continues_to_the_same_bits(tmp_path, kind, epoch, step):
    config, data = settings(epochs=6), coordinates()
    whole = learner_for(kind)
    expected = fit(whole, data, config)

    with pytest.raises(doubles.Killed):
        fit(learner_for(kind), data, config, open_run(tmp_path / "run", config.to_json()), doubles.KillAt(epoch, step))
    resumed = learner_for(kind)
    folder = open_run(tmp_path / "run", config.to_json(), resume=True)
    result = fit(resumed, data, config, folder)
    assert without_time(result.rows) == without_time(expected.rows)
    assert without_time(folder.rows()) == without_time(expected.rows)
    assert result.epoch == expected.epoch and result.scores == expected.scores
    a, b = doubles.state_of(whole), doubles.state_of(resumed)
    assert same_bits(a, b)


SCRIPT = """
import os, signal, sys
from training_doubles import ToyLearner, coordinates, settings
from augury.training.loop import fit
from augury.training.progress import Progress
from augury.training.run_folder import open_run
from pathlib import Path

class Killer(Progress):
    def step(self, epoch, step, loss):
        if (epoch, step) == (4, 2):
            os.kill(os.getpid(), signal.SIGKILL)

config = settings(epochs=6)
fit(ToyLearner(), coordinates(), config, open_run(Path(sys.argv[1]), config.to_json()), Killer())
"""


def test_a_process_that_was_really_killed_continues_to_the_same_bits(tmp_path):
    tests = str(Path(__file__).parent)
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])},
        check=False,
    )
    assert process.returncode == -9
    config, data = settings(epochs=6), coordinates()
    whole, resumed = ToyLearner(), ToyLearner()
    expected = fit(whole, data, config)
    result = fit(resumed, data, config, open_run(tmp_path / "run", config.to_json(), resume=True))
    assert without_time(result.rows) == without_time(expected.rows)
    assert same_bits(doubles.state_of(whole), doubles.state_of(resumed))


def test_resuming_a_finished_run_trains_no_more_and_says_the_same(tmp_path):
    config, data = settings(epochs=4), coordinates()
    first = fit(ToyLearner(EVIDENCES), data, config, open_run(tmp_path / "run", config.to_json()))
    again = ToyLearner(EVIDENCES)
    again.train_step = None
    second = fit(again, data, config, open_run(tmp_path / "run", config.to_json(), resume=True))
    assert second.rows == first.rows and second.scores == first.scores and second.epoch == first.epoch


def test_a_checkpoint_is_only_written_when_due(tmp_path):
    config = settings(epochs=4, checkpoint_seconds=3600.0)
    folder, epochs = open_run(tmp_path / "run", config.to_json()), []

    class Watch(Progress):
        def step(self, *args):
            epochs.append(folder.checkpoint.exists())

    fit(ToyLearner(), coordinates(), config, folder, Watch())
    assert not any(epochs)
    assert load_checkpoint(folder.checkpoint)[1]["epoch"] == 4


def test_a_failed_write_leaves_the_checkpoint_before_it(tmp_path):
    save_checkpoint(tmp_path, 1, {"w": torch.ones(2)}, {"note": "first"})
    with pytest.raises(TypeError):
        save_checkpoint(tmp_path, 2, {"w": torch.zeros(2)}, {"note": object()})
    tensors, facts, damaged = load_checkpoint(tmp_path)
    assert not damaged and facts["epoch"] == 1 and facts["note"] == "first" and torch.equal(tensors["w"], torch.ones(2))
    save_checkpoint(tmp_path, 3, {"w": torch.zeros(2)}, {})
    save_checkpoint(tmp_path, 3, {"w": torch.zeros(2)}, {}, step=2)
    names = ["epoch-000003-step-000002.safetensors", "epoch-000003.safetensors"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    assert load_checkpoint(tmp_path)[1]["step"] == 2


def test_damaged_and_missing_checkpoints_are_told_apart(tmp_path):
    refused("no checkpoint in", load_checkpoint, tmp_path, error=RunError)
    save_checkpoint(tmp_path, 1, {"w": torch.ones(2)}, {})
    (tmp_path / "epoch-000002.safetensors").write_bytes(b"not safetensors")
    _, facts, damaged = load_checkpoint(tmp_path)
    assert facts["epoch"] == 1 and "epoch-000002.safetensors is damaged" in damaged[0]
    save_file({"w": torch.ones(2)}, tmp_path / "epoch-000001.safetensors")
    refused("000002.safetensors is damaged.*000001.safetensors is damaged", load_checkpoint, tmp_path, error=RunError)


def test_a_checkpoint_of_version_0_1_is_read(tmp_path):
    save_file({"w": torch.ones(2)}, tmp_path / "epoch-000007.safetensors")
    (tmp_path / "state.json").write_text('{"epoch": 7, "tensors": "epoch-000007.safetensors"}')
    assert load_checkpoint(tmp_path)[1]["epoch"] == 7
    save_checkpoint(tmp_path, 8, {"w": torch.ones(2)}, {})
    assert not (tmp_path / "state.json").exists()


def test_checkpoints_of_other_networks_or_settings_are_refused(tmp_path):
    config = settings(epochs=1)
    fit(ToyLearner(), coordinates(), config, open_run(tmp_path / "run", config.to_json()))
    other = ToyLearner()
    other.model.net = torch.nn.Linear(2, 2)
    with pytest.raises(RunError, match="does not fit this network"):
        fit(other, coordinates(), config, open_run(tmp_path / "run", config.to_json(), resume=True))
    open_run(tmp_path / "five", settings(epochs=5).to_json())
    with pytest.raises(InputError, match="epochs must be as it was: 5; got 6"):
        open_run(tmp_path / "five", settings(epochs=6).to_json(), resume=True)


def test_folders_that_exist_are_no_run_or_cannot_be_written_are_errors_at_once(tmp_path):
    path, config = tmp_path / "run", settings(epochs=1).to_json()
    open_run(path, config)
    (path / "keep.txt").write_text("mine")
    refused(r"already exists.*--overwrite.*--resume", open_run, path, config)
    refused("exclude each other", open_run, path, config, overwrite=True, resume=True)
    (path / "metrics.jsonl").write_text("{}\n")
    folder = open_run(path, config, overwrite=True)
    assert folder.rows() == [] and (path / "keep.txt").read_text() == "mine"
    (tmp_path / "thesis.tex").write_text("years of work")
    refused("not a run folder", open_run, tmp_path, {}, overwrite=True)
    (tmp_path / "file").write_text("not a folder")
    refused(r"cannot write .* Choose a folder", open_run, tmp_path / "file" / "run", {}, error=RunError)


def test_metrics_cut_short_by_a_kill_are_read_up_to_the_last_whole_line(tmp_path):
    folder = open_run(tmp_path / "run", {})
    folder.add_row({"epoch": 1})
    with (folder.path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 2, "lo')
    assert folder.rows() == [{"epoch": 1}]
    folder.write_rows(folder.rows())
    assert json.loads((folder.path / "metrics.jsonl").read_text()) == {"epoch": 1}
