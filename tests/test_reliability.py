"""Nothing is lost: damaged checkpoints, signals, full disks, two processes in one folder, rests of a kill."""

import errno
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from torch import Tensor

from augury.core import files
from augury.core.errors import RunError
from augury.methods import learn as learning
from augury.training import checkpoint
from augury.training.checkpoint import checkpoints, load_checkpoint
from augury.training.loop import fit
from augury.training.progress import Progress
from augury.training.run_folder import locked, open_run
from refusal import refused
from training_doubles import KillAt, Killed, ToyLearner, coordinates, same_bits, settings, state_of, without_time

CONFIG, DATA = settings(epochs=4), coordinates()
EVIDENCES = [-5.0, -3.0, -4.0, -2.0]


class Said(Progress):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def stopped(path: Path) -> Path:
    """A run that was killed in its third epoch; the checkpoints after epochs 1 and 2 are there."""
    with pytest.raises(Killed):
        fit(ToyLearner(EVIDENCES), DATA, CONFIG, open_run(path, CONFIG.to_json()), KillAt(3, 2))
    return path


def resumed(path: Path) -> tuple[dict, list, list[str]]:
    learner, said = ToyLearner(EVIDENCES), Said()
    result = fit(learner, DATA, CONFIG, open_run(path, CONFIG.to_json(), resume=True), said)
    return state_of(learner), without_time(result.rows), said.notes


@pytest.fixture(scope="module")
def whole():
    learner = ToyLearner(EVIDENCES)
    rows = without_time(fit(learner, DATA, CONFIG).rows)
    return state_of(learner), rows


def flipped(content: bytes, bit: int) -> bytes:
    k = bit // 8
    return content[:k] + bytes([content[k] ^ (1 << bit % 8)]) + content[k + 1 :]


def test_a_flipped_bit_of_a_checkpoint_is_refused_by_name_or_harmless(tmp_path, whole):
    """Fifty single bits of the last checkpoint: the previous one is taken, or what is read is the same."""
    path, passed_over = stopped(tmp_path / "run"), 0
    last, before = checkpoints(path / "checkpoint")
    content, size = last.read_bytes(), 8 * last.stat().st_size
    right, previous = load_checkpoint(last.parent), checkpoint._read(before)
    for bit in (*range(0, 64, 8), *range(64, size, size // 42)):
        last.write_bytes(flipped(content, bit))
        tensors, facts, damaged = load_checkpoint(last.parent)
        expected = previous if damaged else right
        assert same_bits(tensors, expected[0]) and facts == expected[1], bit
        assert all("epoch-000002.safetensors is damaged" in text for text in damaged)
        passed_over += len(damaged)
    assert passed_over > 40 and damaged
    state, rows, notes = resumed(path)
    assert same_bits(state, whole[0]) and rows == whole[1]
    assert "is damaged (its checksum differs); the run resumes from the checkpoint before it" in notes[0]


@pytest.mark.parametrize("bit", range(3, 1200, 150))
def test_a_flipped_bit_of_the_metrics_is_harmless(tmp_path, whole, bit):
    """The lines of metrics, by which training may stop early, are in the checkpoint, too."""
    metrics = stopped(tmp_path / "run") / "metrics.jsonl"
    metrics.write_bytes(flipped(metrics.read_bytes(), bit))
    state, rows, _ = resumed(tmp_path / "run")
    assert same_bits(state, whole[0]) and rows == whole[1]


def test_where_both_checkpoints_are_damaged_the_run_is_refused(tmp_path):
    path = stopped(tmp_path / "run")
    for file in checkpoints(path / "checkpoint"):
        file.write_bytes(flipped(file.read_bytes(), 8 * file.stat().st_size - 1))
    says = r"epoch-000002\.safetensors is damaged \(its checksum differs\).*epoch-000001"
    refused(says, resumed, path, error=RunError)


@pytest.mark.parametrize("deleted", range(4))
def test_a_kill_while_a_run_is_deleted_leaves_one_that_can_be_overwritten(tmp_path, monkeypatch, deleted):
    open_run(tmp_path / "r", {"epochs": 1})
    for name in ("metrics.jsonl", "model.safetensors", "report.html"):
        (tmp_path / "r" / name).write_text("x")
    unlink, left = Path.unlink, [deleted]

    def until(self, missing_ok=False):
        left[0] -= self.exists()
        if left[0] < 0:
            raise KeyboardInterrupt
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", until)
    with pytest.raises(KeyboardInterrupt):
        open_run(tmp_path / "r", {"epochs": 2}, overwrite=True)
    monkeypatch.undo()
    open_run(tmp_path / "r", {"epochs": 2}, overwrite=True)
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["config.json"]


@pytest.mark.parametrize("where", ["", "checkpoint", "views"])
def test_what_a_kill_left_of_a_write_is_swept(tmp_path, where, whole):
    path = stopped(tmp_path / "run")
    (path / where).mkdir(exist_ok=True)
    (path / where / ".x.json.123.part").write_text("half")
    (path / ".notes.part").write_text("the user's own")
    assert resumed(path)[1] == whole[1]
    assert [p.name for p in path.rglob("*.part")] == [".notes.part"]
    lone = tmp_path / "lone"
    lone.mkdir()
    (lone / ".config.json.9.part").write_text("half")
    assert open_run(lone, {}) and not list(lone.rglob("*.part"))


def test_an_old_checkpoint_that_a_kill_left_is_removed(tmp_path):
    """A kill may come after the last one is written, and before the third last is removed; no other is written then."""
    path = stopped(tmp_path / "run")
    old = checkpoints(path / "checkpoint")[0]
    content = old.read_bytes()
    resumed(path)
    last = checkpoints(path / "checkpoint")
    old.write_bytes(content)
    resumed(path)
    assert checkpoints(path / "checkpoint") == last and len(last) == 2
    old.write_bytes(content)
    for file in last:
        file.write_bytes(flipped(file.read_bytes(), 8 * file.stat().st_size - 1))
    with pytest.raises(Killed):
        fit(ToyLearner(EVIDENCES), DATA, CONFIG, open_run(path, CONFIG.to_json(), resume=True), KillAt(3, 2))
    assert load_checkpoint(old.parent)[1]["epoch"] == 2  # what it resumes from is kept


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES], ids=errno.errorcode.get)
@pytest.mark.parametrize("where", ["save_file", "touch"])
def test_a_full_disk_and_a_read_only_folder_leave_the_last_checkpoint_whole(
    tmp_path, monkeypatch, number, where, whole
):
    def fails(*args, **given):
        raise OSError(number, os.strerror(number))

    class FillAt(Progress):
        def epoch(self, row):
            if row["epoch"] == 3:
                monkeypatch.setattr(*((checkpoint, where) if where == "save_file" else (files.Path, where)), fails)

    with pytest.raises(RunError, match=r"cannot write .*epoch-000003"):
        fit(ToyLearner(EVIDENCES), DATA, CONFIG, open_run(tmp_path / "run", CONFIG.to_json()), FillAt())
    monkeypatch.undo()
    assert load_checkpoint(tmp_path / "run/checkpoint")[1]["epoch"] == 2
    state, rows, notes = resumed(tmp_path / "run")
    assert same_bits(state, whole[0]) and rows == whole[1] and not notes


class Signal(Progress):
    def __init__(self, number, epoch, step):
        self.number, self.at = number, (epoch, step)

    def step(self, epoch, step, loss):
        if (epoch, step) == self.at:
            signal.raise_signal(self.number)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_an_interrupt_finishes_the_step_and_saves_it(tmp_path, whole, step):
    folder = open_run(tmp_path / "run", CONFIG.to_json())
    with pytest.raises(KeyboardInterrupt):
        fit(ToyLearner(EVIDENCES), DATA, CONFIG, folder, Signal(signal.SIGINT, 2, step))
    facts = load_checkpoint(folder.checkpoint)[1]
    assert (facts["epoch"], facts["step"]) == (1, step)
    state, rows, _ = resumed(tmp_path / "run")
    assert same_bits(state, whole[0]) and rows == whole[1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_training_goes_on_after_a_signal_whose_handler_returns(tmp_path, whole):
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    try:
        learner = ToyLearner(EVIDENCES)
        folder = open_run(tmp_path / "run", CONFIG.to_json())
        rows = fit(learner, DATA, CONFIG, folder, Signal(signal.SIGTERM, 2, 1)).rows
    finally:
        signal.signal(signal.SIGTERM, before)
    assert came == [signal.SIGTERM] and without_time(rows) == whole[1]


def test_a_signal_that_is_ignored_stays_ignored(tmp_path, whole):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        folder = open_run(tmp_path / "run", CONFIG.to_json())
        rows = fit(ToyLearner(EVIDENCES), DATA, CONFIG, folder, Signal(signal.SIGHUP, 2, 1)).rows
    finally:
        signal.signal(signal.SIGHUP, before)
    assert without_time(rows) == whole[1]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_command_says_how_to_resume(npz, augury, monkeypatch, name):
    fit, number = learning.fit, getattr(signal, name)
    words = ["learn", npz, "-g", "rotation", "--no-baseline", "--epochs", "2", "--run", "a", "--model", "mlp5", "-q"]
    monkeypatch.setattr(learning, "fit", lambda *args: fit(*args[:4], Signal(number, 1, 1)))
    code, out, err = augury(*words)
    assert code == 128 + number and not out
    assert name in err and "--run a --resume" in err and "Traceback" not in err
    assert checkpoints(Path("a/checkpoint")) and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_longer_run_holds_no_more_tensors():
    held = []

    class Count(Progress):
        def epoch(self, row):
            gc.collect()
            held.append(sum(issubclass(type(thing), Tensor) for thing in gc.get_objects()))

    settings = {"epochs": 20, "batch": 12, "samples": 2, "samples_eval": 2, "evidence_below": 9.0}
    learning.learn(DATA, "toy_mlp", callbacks=Count(), **settings)
    # an optimiser's moments and the best epoch come once; in the second half only the last scores do
    assert len(held) == 20 and len(set(held[:10])) <= 4 and len(set(held[11:])) <= 2, held


def test_a_second_process_in_the_same_folder_is_refused(augury, npz):
    script = "import sys; from pathlib import Path; from augury.training.run_folder import locked\n"
    script += "with locked(Path('a')): print('in', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "in\n"
        code, _, err = augury("learn", npz, "--run", "a", "--epochs", "1", "--model", "mlp5", "-g", "rotation")
        assert code == 2 and "another process is at work in the run folder a" in " ".join(err.split())
        process.kill()
    with locked(Path("a")):  # a killed process leaves no lock
        pass
    assert not list(Path("a").iterdir())
