"""No command prints a traceback for a user's mistake: typical ones, over all commands, end in a message."""

import re

import numpy as np
import pytest

from augury.cli.main import app, main

NAMES = {command.callback.__name__ for command in app.registered_commands} | {"data"}

MISTAKES = {
    "learn": [
        ["nowhere"], ["--config", "none.toml"], ["--config", "bad.toml"], ["empty/"], ["text.txt"], ["damaged.npz"],
        ["ok.npz", "--policy", "text.txt"], ["ok.npz", "--epochs", "three"], ["ok.npz", "--epochs", "0"],
        ["ok.npz", "--device", "gpu"], ["ok.npz", "--frobnicate"], ["ok.npz", "--test-fraction", "2"],
        ["ok.npz", "--task", "clasification"], ["ok.npz", "--run", "text.txt"], ["ok.npz", "--set", "rate"],
        ["ok.npz", "--dry-run", "--model", "pointnet"], ["nan.npz"], ["one_class.npz"],
    ],
    "audit": [
        ["nowhere", "ok.npz"], ["text.txt", "ok.npz"], ["no.such:thing", "ok.npz", "-g", "C4"], ["empty/", "ok.npz"],
        ["fake.pt2", "ok.npz", "-g", "C4"], ["fake.safetensors", "ok.npz", "-g", "C4"], ["fake.pt", "ok.npz"],
    ],
    "export": [["nowhere", "--to", "json"], ["empty/", "--to", "json"], ["text.txt", "--to", "kornia"], ["empty/"]],
    "report": [["nowhere"], ["empty/"], ["text.txt"]],
    "compare": [["nowhere", "empty/"], ["text.txt", "empty/"]],
    "doctor": [["nowhere"], ["empty/"], ["damaged.npz"], ["ok.npz", "--plant", "turned"]],
    "bench": [["polices"], ["policies", "--scale", "big"], ["policies", "--only", "what"], ["policies", "--jobs", "0"]],
    "reproduce": [["lilla", "table1"], ["lila", "table9"], ["lila", "recovery", "--scale", "big"], ["lila"]],
    "amortize": [["nowhere"], ["empty/"], []],
    "adapt": [["nowhere", "ok.npz"], ["text.txt", "ok.npz"], []],
    "data": [["fetch", "mnst"], ["frobnicate"]],
}  # fmt: skip

CASES = [(command, words) for command, lists in MISTAKES.items() for words in lists]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    x, y = np.random.default_rng(0).random((12, 8, 8), dtype=np.float32), np.arange(12) % 2
    np.savez(folder / "ok.npz", x=x, y=y)
    np.savez(folder / "nan.npz", x=x * np.nan, y=y)
    np.savez(folder / "one_class.npz", x=x, y=y * 0)
    (folder / "empty").mkdir()
    (folder / "bad.toml").write_text("epochs = = 3")
    for name in ("text.txt", "damaged.npz", "fake.pt2", "fake.safetensors", "fake.pt"):
        (folder / name).write_text("nothing of the kind")
    return folder


def test_every_command_is_walked():
    assert set(MISTAKES) == NAMES


@pytest.mark.parametrize(("command", "words"), CASES, ids=[" ".join([c, *w]) for c, w in CASES])
def test_a_mistake_is_a_message(place, monkeypatch, capsys, command, words):
    monkeypatch.chdir(place)
    monkeypatch.setattr("sys.argv", ["augury", command, *words])
    with pytest.raises(SystemExit) as end:
        main()
    captured = capsys.readouterr()
    assert end.value.code == 2, captured.err
    assert "Traceback" not in captured.err and len(captured.err.strip()) > 20
    assert not re.search(r"\b\w+Error\(", captured.err)


def test_every_command_shows_an_example_and_its_exit_codes(monkeypatch, capsys):
    for command in sorted(NAMES - {"data"}):
        monkeypatch.setattr("sys.argv", ["augury", command, "--help"])
        with pytest.raises(SystemExit) as end:
            main()
        out = capsys.readouterr().out
        assert not end.value.code and f"augury {command} " in out and "Exit codes" in out
