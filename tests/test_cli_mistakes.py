"""No command prints a traceback for a user's mistake: typical ones, over all commands, end in a message."""

import re
import shutil

import numpy as np
import pytest
from safetensors.torch import save_file

from adapt_doubles import extractor
from augury.cli.main import app
from augury.core.rng import generator
from augury.models.networks import build
from augury.training.saved_model import describe_extractor, save_model
from pages import ROOT

NAMES = {command.callback.__name__ for command in app.registered_commands} | {"data"}

MISTAKES = {
    "learn": [
        ["nowhere"], ["--config", "none.toml"], ["--config", "bad.toml"], ["empty/"], ["text.txt"], ["damaged.npz"],
        ["ok.npz", "--policy", "text.txt"], ["ok.npz", "--epochs", "three"], ["ok.npz", "--epochs", "-1"],
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

WEIGHTS = "audit w.safetensors ok.npz --architecture mlp5"
SAYS = {
    "learn ok.npz -w rotation=inf -m augmented": "must be a finite number",
    "learn ok.npz -w rotation=wide": "rotation must be a number; got 'wide'",
    "learn ok.npz -w rotation": "must read name=value",
    "learn ok.npz --set evaluate_every=1.5": "must be a whole number",
    "learn ok.npz --seeds 0": "--seeds must be at least 1; got 0",
    "learn ok.npz --test empty/": "must both be folders, or both .npz files",
    "learn ok.npz --run a --overwrite --resume": "exclude each other",
    "learn a": "a is the folder of a run, not of data",
    "learn ok.npz --tensorboard text.txt": "there is a file at text.txt",
    "learn real.npz": "say task='regression' (--task regression)",
    "audit ok.npz a -g C4": "a is the folder of a run, not of data",
    WEIGHTS: "name what the model should be invariant to",
    f"{WEIGHTS} -g C5x": "transformation must be one of",
    f"{WEIGHTS} -g C4 --fail-above LY=1": "Did you mean 'LI'",
    f"{WEIGHTS} -g C4 --fail-above LI": "name=value",
    f"{WEIGHTS} -g C4 --fail-above LI=nan": "must be a finite number",
    f"{WEIGHTS} -g C4 --fail-above LI=much": "LI must be a number",
    f"{WEIGHTS} -g C4 --pictures worst.jpg": "must name a .png",
    "audit a ok.npz -g C4 --out a --overwrite": "already exists",
    "audit a ok.npz -g C4 --out ok.npz/x --overwrite": "there is a file at",
    "export a --to korna": "Did you mean 'kornia'",
    "export a --to json --json": "--out FILE",
    "export a --to torch --sure": "--sure is for policies",
    "export a --to json --out .": "is a folder",
    "export a --to json --out ok.npz/p.json": "cannot write",
    "export a": "--to",
    "report": "RUN...",
    "report a --out mine.html": "not overwritten",
    "report a --out .": ". is a folder",
    "compare a": "at least two runs",
    "compare a a --out mine.html": "not overwritten",
    "doctor ok.npz --seconds 0": "--seconds must be positive",
    "doctor ok.npz --images 1": "at least 2",
    "amortize ok.npz": "--groups must name",
    "amortize ok.npz -g flip --set rate=fast": "rate must be a number",
    "amortize ok.npz -g flip --set shared=maybe": "shared must be true or false",
    "amortize ok.npz -g flip --resume": "--run",
    "adapt e.safetensors ok.npz --descriptor left": "must read name=value",
    "adapt e.safetensors ok.npz --levels 2": "takes inputs of shape [2, 8, 8]; this task's are [1, 8, 8]",
    "adapt cut.safetensors ok.npz": "cut short",
    "adapt none.safetensors ok.npz": "no extractor at",
}

CASES = [([command, *words], "") for command, lists in MISTAKES.items() for words in lists]
CASES += [(line.split(), says) for line, says in SAYS.items()]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    x, y = np.random.default_rng(0).random((12, 8, 8), dtype=np.float32), np.arange(12) % 2
    np.savez(folder / "ok.npz", x=x, y=y)
    np.savez(folder / "nan.npz", x=x * np.nan, y=y)
    np.savez(folder / "one_class.npz", x=x, y=y * 0)
    np.savez(folder / "real.npz", x=x, y=y + 0.5)
    (folder / "empty").mkdir()
    shutil.copytree(ROOT / "tests" / "data" / "runs_0_1" / "lila", folder / "a")
    save_file(build("mlp5", (1, 8, 8), 2, generator(0)).state_dict(), folder / "w.safetensors")
    save_model(folder / "e.safetensors", extractor(), describe_extractor(extractor()))
    (folder / "cut.safetensors").write_bytes((folder / "e.safetensors").read_bytes()[:-20])
    (folder / "bad.toml").write_text("epochs = = 3")
    for name in ("text.txt", "mine.html", "damaged.npz", "fake.pt2", "fake.safetensors", "fake.pt"):
        (folder / name).write_text("nothing of the kind")
    return folder


def test_every_command_is_walked():
    assert set(MISTAKES) == NAMES


@pytest.mark.parametrize(("words", "says"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_a_mistake_is_a_message(place, augury, monkeypatch, words, says):
    monkeypatch.chdir(place)
    code, out, err = augury(*words)
    assert code == 2 and (out == "" or words[0] == "doctor") and says in " ".join(err.split()), err
    assert "Traceback" not in err and len(err.strip()) > 20 and not re.search(r"\b\w+Error\(", err)
    assert (place / "mine.html").read_text() == "nothing of the kind"


def test_every_command_shows_an_example_and_its_exit_codes(augury):
    for command in sorted(NAMES - {"data"}):
        code, out, _ = augury(command, "--help")
        assert code == 0 and f"augury {command} " in out and "Exit codes" in out
