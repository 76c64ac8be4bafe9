"""Settings from a TOML file and from flags: flags win, mistakes are named, and what is printed can be read again."""

import subprocess
import sys
import tomllib

import pytest

from augury.cli.settings import KINDS, SETTINGS, from_toml, merge, to_toml
from augury.config.learn import LearnConfig
from augury.core.errors import InputError
from export_doubles import GEOMETRY, policy
from refusal import refused

FILE = """
data = "mnist5k"
variant = "rotated"
method = "augerino"
epochs = 7
lr = 1
generators = ["rotation", "scale"]
skip_bad = true
run = "runs/a"

[widths]
rotation = 30
scale_x = 1.2
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(FILE)
    return path


def test_a_file_gives_what_flags_do_not(file):
    found = merge({"epochs": 9, "data": None}, file)
    assert found.values["data"] == "mnist5k" and found.method == "augerino"
    assert str(found.folder("run")) == "runs/a"
    config = found.config
    assert (config.epochs, config.rate, config.generators) == (9, 1.0, ("rotation", "scale"))
    assert found.reading == {"variant": "rotated", "skip_bad": True, "seed": 0}


def test_flags_win_width_by_width(file):
    found = merge({"widths": {"rotation": 90.0}, "method": "lila", "baseline": False}, file)
    assert found.settings["widths"] == {"rotation": 90.0, "scale_x": 1.2} and found.method == "lila"
    assert found.baseline is False and merge({}, file).baseline is True


def test_what_is_printed_is_read_again_as_the_same(file, augury, tmp_path):
    code, text, _ = augury("learn", "--config", file, "--set", "eta_steps=3", "--set", "batch_size=7", "--print-config")
    assert code == 0
    (tmp_path / "again.toml").write_text(text)
    assert augury("learn", "--config", tmp_path / "again.toml", "--print-config")[1] == text
    values = tomllib.loads(text)
    assert values["eta_steps"] == 3 and values["batch"] == 7 and values["rate"] == 1.0
    assert values["widths"] == {"rotation": 30, "scale_x": 1.2}
    again = merge({}, tmp_path / "again.toml")
    assert again.config == merge({"eta_steps": 3, "batch": 7}, file).config
    assert not (tmp_path / "runs").exists()


def test_every_setting_can_be_in_a_file_and_is_printed(augury):
    values = tomllib.loads(augury("learn", "toy", "--print-config")[1])
    left_out = {"model", "generators", "widths", "slight"}  # chosen by the data, or empty
    assert set(SETTINGS) - left_out <= set(values)
    defaults = LearnConfig.for_method("lila").to_json()
    assert all(values[n] == defaults[n] for n in SETTINGS if n in values and not n.startswith("evaluate"))
    assert set(LearnConfig().to_json()) <= set(KINDS)


def test_texts_survive_whatever_is_in_them():
    odd = {"a": 'C:\\path "quoted"\n\ttab', "b": "ümläut \x7f", "c": [1, 2.5, True], "d": {"x": 1e-7}, "e": None}
    assert tomllib.loads(to_toml(odd)) == {k: v for k, v in odd.items() if v is not None}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("epoch = 3", "Did you mean 'epochs'"),
        ("epochs = 'three'", "epochs in .* must be a whole number; got 'three'"),
        ("epochs = 3.5", "must be a whole number"),
        ("epochs = true", "must be a whole number"),
        ("rate = 'fast'", "must be a number"),
        ("generators = 'rotation'", "must be a list of texts"),
        ("widths = 3", "must be a table of numbers"),
        ("[widths]\nrotation = 'wide'", "must be a table of numbers"),
        ("baseline = 1", "must be true or false"),
        ("epochs 3", "must be TOML"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, text, says):
    path = tmp_path / "run.toml"
    path.write_text(text)
    refused(says, from_toml, path)


def test_a_policy_brings_its_widths_and_excludes_others(tmp_path):
    policy(GEOMETRY).write(tmp_path / "p.json")
    found = merge({"data": "toy", "policy": str(tmp_path / "p.json")})
    assert found.method == "augmented" and found.policy == policy(GEOMETRY)
    assert merge({"data": "toy", "policy": str(tmp_path / "p.json"), "method": "lila"}).method == "lila"
    with pytest.raises(InputError, match="not both"):
        merge({"data": "toy", "policy": str(tmp_path / "p.json"), "generators": ["rotation"]})


COMPLETE = """
import os, sys
os.environ.update(_AUGURY_COMPLETE="complete_bash", COMP_WORDS=sys.argv[1], COMP_CWORD=sys.argv[2])
sys.argv = ["augury"]
from augury.cli.main import app
try:
    app(prog_name="augury")
finally:
    print("torch" in sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("line", "position", "offers"),
    [
        ("augury do", 1, {"doctor"}),
        ("augury learn --method l", 3, {"lila", "last_layer"}),
        ("augury learn mnist5", 2, {"mnist5k"}),
        ("augury learn toy --model resnet_8", 4, {"resnet_8_8", "resnet_8_16"}),
        ("augury export runs/a --to k", 4, {"kornia"}),
        ("augury learn --print", 2, {"--print-config"}),
    ],
)
def test_the_shell_completes_commands_options_and_names_at_once(line, position, offers):
    words = [sys.executable, "-c", COMPLETE, line, str(position)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == offers and done.stderr.strip() == "False"


def test_the_script_for_a_shell_can_be_had(augury, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))  # a test may have none
    code, out, _ = augury("--show-completion", "bash")
    assert code == 0 and "_AUGURY_COMPLETE=complete_bash" in out
