"""`augury audit` as a user meets it: a verdict, JSON, limits for CI, a picture, and messages instead of tracebacks."""

import json
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from augury.auditing.worst import Case, save_worst
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.models.networks import build

PROMISED = {"group", "LI", "DI", "SI", "agreement", "noise_floor", "sigma_max_jacobian", "verdict", "images"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Data, another set, and weights, in the folder one stands in."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3
    for name in ("digits", "others"):
        x = rng.random((40, 8, 8), dtype=np.float32)
        np.savez(tmp_path / f"{name}.npz", x_train=x[:20], y_train=y[:20], x_test=x[20:], y_test=y[20:])
    save_file(build("mlp5", (1, 8, 8), 3, generator(0)).state_dict(), tmp_path / "w.safetensors")
    return tmp_path


@pytest.fixture
def augury(augury):
    return partial(augury, "audit")


WEIGHTS = ("w.safetensors", "digits.npz", "--architecture", "mlp5", "-q")


def test_a_person_gets_a_verdict_its_reasons_and_the_worst_inputs(place, augury):
    code, out, err = augury(*WEIGHTS, "--group", "C4", "--drift", "others.npz")
    assert code == 0, err
    said = ("C4: sensitive", "keep the prediction", "noise floor", "others", "noisy", "90 deg", "By class")
    for words in (*said, "The worst inputs"):
        assert words in out


def test_json_is_one_object_with_what_was_promised(place, augury):
    code, out, _ = augury(*WEIGHTS, "--group", "C4", "--json")
    values = json.loads(out)
    assert code == 0 and values.keys() >= PROMISED
    assert values["group"] == "C4" and values["verdict"] == "sensitive" and values["images"] == 20
    assert set(values["LI"]) == {"value", "stderr"}


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        (("--fail-above", "LI_relative=0.1"), 3),
        (("--fail-above", "LI_relative=100"), 0),
        (("--fail-below", "SI=0.95"), 3),
        (("--fail-below", "SI=-1"), 0),
        (("--fail-above", "DI=100", "--fail-below", "agreement=1.5"), 3),
    ],
)
def test_limits_set_the_exit_code_and_say_why(place, augury, limit, code):
    ended, out, err = augury(*WEIGHTS, "-g", "C4", "--no-corruptions", "--json", *limit)
    json.loads(out)
    assert ended == code and ("the limit of" in err) == (code == 3)


def test_widths_steps_and_a_sample(place, augury):
    words = (
        "-g",
        "rotation",
        "-w",
        "rotation=60",
        "--levels",
        2,
        "--images",
        7,
        "--no-corruptions",
        "--json",
    )
    values = json.loads(augury(*WEIGHTS, *words)[1])
    assert [point["strength"] for point in values["curve"]] == [30, 60] and values["images"] == 7
    assert values["drift"] == {}


def test_the_worst_inputs_become_a_picture(place, augury):
    assert augury(*WEIGHTS, "-g", "C4", "--no-corruptions", "--pictures", "worst.png")[0] == 0
    with Image.open("worst.png") as picture:
        assert picture.size == (4 * 116 + 4, 6 * 116 + 4)


def test_a_picture_shows_input_view_and_both_maps_in_their_colours(tmp_path):
    x, m = torch.zeros(1, 2, 2), torch.zeros(1, 2, 2)
    x[0, 0, 0], m[0, 0, 0], m[0, 1, 1] = 1.0, 2.0, -1.0
    case = Case(0, 0, 1.0, 0.0, 0, 1, x, x.flip(-1), m, m.flip(-1))
    save_worst(tmp_path / "one.png", [case])
    pixels = np.asarray(Image.open(tmp_path / "one.png"))[4:-4, 4:-4]
    tiles = [pixels[28::56, 116 * j + 28 : 116 * j + 112 : 56] for j in range(4)]
    assert tiles[0][0, 0].tolist() == [255] * 3 and tiles[0][0, 1].tolist() == [0] * 3
    assert tiles[1][0, 1].tolist() == [255] * 3
    red, blue, nothing = tiles[2][0, 0], tiles[2][1, 1], tiles[2][0, 1]
    assert red[0] > red[2] + 100 and blue[2] > blue[0] and nothing.tolist() == [255] * 3
    assert (tiles[3][0, 1] == red).all()


def test_pictures_of_what_is_no_image_are_refused(tmp_path):
    signal = torch.zeros(2, 9)
    case = Case(0, 0, 1.0, None, 0, 1, signal, signal, None, None)
    with pytest.raises(InputError, match="only images"):
        save_worst(tmp_path / "a.png", [case])
    with pytest.raises(InputError, match=r"must be a \.png"):
        save_worst(tmp_path / "a.jpg", [case])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("w.pkl", "digits.npz", "-g", "C4"), "is refused"),
        (("nowhere", "digits.npz", "-g", "C4"), "no such file or folder"),
        (("w.safetensors", "digits.npz", "-g", "C4"), "--architecture"),
        ((*WEIGHTS, "-g", "C5x"), "transformation must be one of"),
        ((*WEIGHTS, "-g", "rotation3d"), "acts on data of kind points"),
        (WEIGHTS, "name what the model should be invariant to"),
        ((*WEIGHTS, "-g", "C4", "--fail-above", "LY=1"), "Did you mean 'LI'"),
        ((*WEIGHTS, "-g", "C4", "--fail-above", "LI"), "name=value"),
        ((*WEIGHTS, "-g", "C4", "--fail-above", "LI=nan"), "must be a finite number"),
        ((*WEIGHTS, "-g", "C4", "--fail-above", "LI=much"), "LI must be a number"),
        ((*WEIGHTS, "-g", "C4", "--levels", "0"), "levels must be at least 1"),
        ((*WEIGHTS, "-g", "C4", "--images", "1"), "at least 2"),
        ((*WEIGHTS, "-g", "C4", "--saliency", "gradeint"), "Did you mean 'gradient'"),
        ((*WEIGHTS, "-g", "C4", "--pictures", "worst.jpg"), "must name a .png"),
        ((*WEIGHTS, "-g", "C4", "--part", "tst"), "Did you mean 'test'"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_what_to_do(place, augury, arguments, says):
    (place / "w.pkl").write_bytes(pickle.dumps({}))
    code, out, err = augury(*arguments)
    assert code == 2 and out == "" and says in " ".join(err.split()) and "Traceback" not in err


def test_a_limit_on_a_figure_that_is_not_there_is_no_pass(place, augury):
    (place / "my_function_for_audit.py").write_text(
        "import torch\ndef f(x):\n    return x.detach().flatten(1)[:, :3]\n"
    )
    code, _, err = augury("my_function_for_audit:f", "digits.npz", "-g", "C4", "-q", "--fail-below", "SI=0.9")
    assert code == 2 and "SI has no limit to keep" in err
