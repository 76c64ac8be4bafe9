"""What an audit leaves in its folder: the record, and frames of its worst inputs in the right places."""

import json

import numpy as np
import torch
from PIL import Image

from augury.auditing.worst import Case, Examined, leave_audit, worst_gallery
from augury.records.exhibits import Gallery
from augury.records.results import Audit
from report_doubles import audit_record


def case(x, m=True) -> Case:
    saliency = torch.zeros_like(x)
    saliency.view(-1)[0], saliency.view(-1)[-1] = 2.0, -1.0
    maps = (saliency, saliency.flip(-1)) if m else (None, None)
    return Case(0, 0, 1.0, 0.0, 0, 1, x, x.flip(-1), *maps)


def test_images_become_input_view_and_both_maps(tmp_path):
    x = torch.zeros(1, 4, 4)
    x[0, 0, 0] = 1.0
    gallery = worst_gallery(tmp_path, [case(x), case(x)])
    assert (gallery.rows, gallery.columns, gallery.width) == (2, 4, 4)
    tiles = np.asarray(Image.open(tmp_path / gallery.file))[4:8].reshape(4, 4, 4, 3).swapaxes(0, 1)
    assert tiles[0][0, 0].tolist() == [255] * 3 and tiles[1][0, 3].tolist() == [255] * 3
    red, blue = tiles[2][0, 0], tiles[2][3, 3]
    assert red[0] > red[2] + 100 and blue[2] > blue[0] and (tiles[3][0, 3] == red).all()


def test_signals_become_lines_and_clouds_dots_without_maps(tmp_path):
    signal = worst_gallery(tmp_path, [case(torch.linspace(-3, 3, 10).reshape(1, 10))])
    assert signal.style == "line" and (signal.rows, signal.columns) == (1, 4)
    rising = signal.strokes[0][0][0][1::2]
    assert rising == sorted(rising, reverse=True) and signal.strokes[0][1][0][1::2] == rising[::-1]
    assert max(max(frame[0]) for frame in signal.strokes[0]) <= 1000
    cloud = worst_gallery(tmp_path, [case(torch.randn(20, 3))])
    assert cloud.style == "dots" and cloud.columns == 2


def test_models_without_gradients_have_no_maps_and_features_no_frames(tmp_path):
    assert worst_gallery(tmp_path, [case(torch.rand(3, 4, 4), m=False)]).columns == 2
    assert worst_gallery(tmp_path, [case(torch.rand(5))]) is None and worst_gallery(tmp_path, []) is None


def test_the_folder_holds_record_and_frames_and_nothing_of_an_earlier_audit(tmp_path):
    record = audit_record()
    leave_audit(tmp_path, Examined(record, [case(torch.rand(1, 4, 4))]))
    assert Audit.from_json(json.loads((tmp_path / "audit.json").read_text())) == record
    worst = tmp_path / "views" / "worst.json"
    assert Gallery.from_json(json.loads(worst.read_text())).file == "worst.png"
    leave_audit(tmp_path, Examined(record, []))
    assert not worst.exists()
