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
    assert heard["a"][1:] == [
        *[
            ("step", 1, 1),
            ("step", 1, 2),
            ("epoch", 1),
            ("step", 2, 1),
            ("step", 2, 2),
            ("epoch", 2),
            ("stop",),
        ]
    ]
    assert [note[0] for note in notes[:2]] == ["a", "b"]


def test_one_callback_needs_no_list():
    notes = []
    augury.learn(coordinates(24), callbacks=Notes(notes, "a"), **QUICK)
    assert notes[-1] == ("a", "stop")


def test_all_are_stopped_even_if_one_fails():
    class Fails(Progress):
        def stop(self):
            raise RuntimeError("no")

    notes = []
    refused("no", together([Notes(notes, "a"), Fails(), Notes(notes, "b")]).stop, error=RuntimeError)
    assert notes == [("a", "stop"), ("b", "stop")]


def test_something_else_is_refused_with_the_way_out():
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


def test_the_files_can_be_read_back_by_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    learned = augury.learn(coordinates(24), callbacks=[augury.TensorBoard(tmp_path)], **QUICK)
    events = EventAccumulator(str(tmp_path)).Reload()
    losses = [event.value for event in events.Scalars("loss")]
    assert losses == pytest.approx([row["loss"] for row in learned.metrics])
    assert "width/rotation (deg)" in events.Tags()["scalars"]


def test_the_baseline_has_curves_of_its_own(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    notes, recorder = [], Recorder()
    watchers = [Notes(notes, "a"), augury.TensorBoard(tmp_path), TensorBoard("unused", recorder)]
    learned = augury.learn(coordinates(24), callbacks=watchers, baseline=True, **QUICK)
    assert [note[-1] for note in notes].count("stop") == 2
    losses = [event.value for event in EventAccumulator(str(tmp_path / "baseline")).Reload().Scalars("loss")]
    assert losses == pytest.approx([row["loss"] for row in learned.baseline.metrics])
    assert [at for tag, at, _ in recorder.scalars if tag == "loss"] == [1, 2]


def test_without_tensorboard_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    real = builtins.__import__

    def no_tensorboard(name, *args, **kwargs):
        if name == "torch.utils.tensorboard":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_tensorboard)
    refused(r"pip install 'augury\[tensorboard\]'", TensorBoard, tmp_path)
