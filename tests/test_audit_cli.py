"""`augury audit` as a user meets it: a verdict, JSON, limits for CI, pictures; and what it leaves in its folder."""

import json
from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from augury.auditing.worst import Case, Examined, leave_audit, save_worst, worst_gallery
from augury.core.rng import generator
from augury.models.networks import build
from augury.records.exhibits import Gallery
from augury.records.results import Audit, Worst
from refusal import refused
from report_doubles import audit_record

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


def test_widths_steps_a_sample_and_a_picture_of_the_worst_inputs(place, augury):
    words = ["-g", "rotation", "-w", "rotation=60", "--levels", "2", "--images", "7", "--no-corruptions", "--json"]
    values = json.loads(augury(*WEIGHTS, *words)[1])
    assert [point["strength"] for point in values["curve"]] == [30, 60] and values["images"] == 7
    assert values["drift"] == {}
    assert augury(*WEIGHTS, "-g", "C4", "--no-corruptions", "--pictures", "worst.png")[0] == 0
    with Image.open("worst.png") as picture:
        assert picture.size == (4 * 116 + 4, 6 * 116 + 4)


def case(x, m=True) -> Case:
    saliency = torch.zeros_like(x)
    saliency.view(-1)[0], saliency.view(-1)[-1] = 2.0, -1.0
    maps = (saliency, saliency.flip(-1)) if m else (None, None)
    return Case(Worst(0, None, "0", "1", 90.0, 1.0, 0.0), x, x.flip(-1), *maps)


def test_pictures_and_frames_show_input_view_and_both_maps_in_their_colours(tmp_path):
    x = torch.zeros(1, 4, 4)
    x[0, 0, 0] = 1.0
    save_worst(tmp_path / "one.png", [case(x)])
    large = np.asarray(Image.open(tmp_path / "one.png"))[4:-4, 4:-4]
    gallery = worst_gallery(tmp_path, [case(x), case(x)])
    assert (gallery.rows, gallery.columns, gallery.width) == (2, 4, 4)
    small = np.asarray(Image.open(tmp_path / gallery.file))[4:8].reshape(4, 4, 4, 3).swapaxes(0, 1)
    for tiles in ([large[14::28, 116 * j + 14 : 116 * j + 112 : 28] for j in range(4)], small):
        assert tiles[0][0, 0].tolist() == [255] * 3 and tiles[0][0, 1].tolist() == [0] * 3
        assert tiles[1][0, 3].tolist() == [255] * 3
        red, blue, nothing = tiles[2][0, 0], tiles[2][3, 3], tiles[2][0, 1]
        assert red[0] > red[2] + 100 and blue[2] > blue[0] and nothing.tolist() == [255] * 3
        assert (tiles[3][0, 3] == red).all()


def test_signals_become_lines_and_clouds_dots_without_maps(tmp_path):
    signal = worst_gallery(tmp_path, [case(torch.linspace(-3, 3, 10).reshape(1, 10))])
    assert signal.style == "line" and (signal.rows, signal.columns) == (1, 4)
    rising = signal.strokes[0][0][0][1::2]
    assert rising == sorted(rising, reverse=True) and signal.strokes[0][1][0][1::2] == rising[::-1]
    assert max(max(frame[0]) for frame in signal.strokes[0]) <= 1000
    cloud = worst_gallery(tmp_path, [case(torch.randn(20, 3))])
    assert cloud.style == "dots" and cloud.columns == 2
    assert worst_gallery(tmp_path, [case(torch.rand(3, 4, 4), m=False)]).columns == 2  # no gradients, no maps
    assert worst_gallery(tmp_path, [case(torch.rand(5))]) is None and worst_gallery(tmp_path, []) is None


def test_the_folder_holds_record_and_frames_and_nothing_of_an_earlier_audit(tmp_path):
    record = audit_record()
    leave_audit(tmp_path, Examined(record, [case(torch.rand(1, 4, 4))]))
    assert Audit.from_json(json.loads((tmp_path / "audit.json").read_text())) == record
    worst = tmp_path / "views" / "worst.json"
    assert Gallery.from_json(json.loads(worst.read_text())).file == "worst.png"
    leave_audit(tmp_path, Examined(record, []))
    assert not worst.exists()


def test_pictures_of_what_is_no_image_are_refused(tmp_path):
    for name, says in (("a.png", "only images"), ("a.jpg", r"must be a \.png")):
        refused(says, save_worst, tmp_path / name, [case(torch.zeros(2, 9))])


def test_a_limit_on_a_figure_that_is_not_there_is_no_pass(place, augury):
    (place / "my_function_for_audit.py").write_text(
        "import torch\ndef f(x):\n    return x.detach().flatten(1)[:, :3]\n"
    )
    code, _, err = augury("my_function_for_audit:f", "digits.npz", "-g", "C4", "-q", "--fail-below", "SI=0.9")
    assert code == 2 and "SI has no limit to keep" in err
