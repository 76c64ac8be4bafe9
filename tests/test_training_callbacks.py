"""Callbacks of `learn`: all are told, all are stopped; TensorBoard's files hold what the run reported."""

import builtins

import pytest

import augury
from augury.training.progress import Progress, TensorBoard, together
from refusal import refused
from training_doubles import coordinates

QUICK = {"model": "toy_mlp", "epochs": 2, "batch": 12, "samples": 2, "samples_eval": 2}


class Notes(Progress):
    def __init__(self, notes, name):
        self.notes, self.name = notes, name

    def start(self, method, epochs, steps, done, units):
        self.notes.append((self.name, "start", method, epochs, steps, dict(units)))

    def step(self, epoch, step, loss):
        self.notes.append((self.name, "step", epoch, step))

    def epoch(self, row):
        self.notes.append((self.name, "epoch", row["epoch"]))

    def stop(self):
        self.notes.append((self.name, "stop"))


class Recorder:
    """A stand-in for a summary writer."""

    def __init__(self):
        self.scalars, self.closed = [], False

    def add_scalar(self, tag, scalar_value, global_step):
        self.scalars.append((tag, global_step, scalar_value))

    def close(self):
        self.closed = True


def test_every_callback_hears_everything_in_order():
    notes = []
    augury.learn(coordinates(24), callbacks=[Notes(notes, "a"), Notes(notes, "b")], **QUICK)
    heard = {name: [note[1:] for note in notes if note[0] == name] for name in "ab"}
    assert heard["a"] == heard["b"]
    assert heard["a"][0] == ("start", "lila", 2, 2, {"rotation": "deg"})
    epochs = [[("step", k, 1), ("step", k, 2), ("epoch", k)] for k in (1, 2)]
    assert heard["a"][1:] == [*epochs[0], *epochs[1], ("stop",)]
    assert [note[0] for note in notes[:2]] == ["a", "b"]


def test_all_are_stopped_even_if_one_fails_and_something_else_is_refused():
    class Fails(Progress):
        def stop(self):
            raise RuntimeError("no")

    notes = []
    refused("no", together([Notes(notes, "a"), Fails(), Notes(notes, "b")]).stop, error=RuntimeError)
    assert notes == [("a", "stop"), ("b", "stop")]
    refused(r"class Mine\(augury.Progress\)", together, [print])


def test_tensorboard_gets_every_curve():
    recorder = Recorder()
    learned = augury.learn(coordinates(24), callbacks=[TensorBoard("unused", recorder)], **QUICK)
    steps = [at for tag, at, _ in recorder.scalars if tag == "loss/step"]
    assert steps == [1, 2, 3, 4] and recorder.closed
    for tag, key in (("loss", "loss"), ("seconds", "seconds"), ("test_accuracy", "test_accuracy")):
        expected = [(row["epoch"], row[key]) for row in learned.metrics if key in row]
        assert [(at, value) for name, at, value in recorder.scalars if name == tag] == expected
    widths = [value for tag, _, value in recorder.scalars if tag == "width/rotation (deg)"]
    assert widths == [row["widths"]["rotation"] for row in learned.metrics]


def test_tensorboard_reads_the_curves_back_and_the_baseline_has_its_own(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    notes, recorder = [], Recorder()
    watchers = [Notes(notes, "a"), augury.TensorBoard(tmp_path), TensorBoard("unused", recorder)]
    learned = augury.learn(coordinates(24), callbacks=watchers, baseline=True, **QUICK)
    assert [note[-1] for note in notes].count("stop") == 2
    for run, folder in ((learned, tmp_path), (learned.baseline, tmp_path / "baseline")):
        events = EventAccumulator(str(folder)).Reload()
        losses = [event.value for event in events.Scalars("loss")]
        assert losses == pytest.approx([row["loss"] for row in run.metrics])
        assert ("width/rotation (deg)" in events.Tags()["scalars"]) is (run is learned)
    assert [at for tag, at, _ in recorder.scalars if tag == "loss"] == [1, 2]


def test_without_tensorboard_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    real = builtins.__import__

    def no_tensorboard(name, *args, **kwargs):
        if name == "torch.utils.tensorboard":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_tensorboard)
    refused(r"pip install tensorboard", TensorBoard, tmp_path)
