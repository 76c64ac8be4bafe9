"""Inputs as frames: which pixel stands where, and what lines and dots say."""

import numpy as np
import pytest
import torch
from PIL import Image

from augury.core.rng import generator
from augury.records.exhibits import BOX
from augury.training.frames import SIDE, Painter, as_pixels, dots_behind


def test_a_sheet_holds_every_picture_in_its_place(tmp_path):
    x = torch.rand(2, 3, 1, 4, 6, generator=generator(0))
    gallery = Painter(tmp_path, "image", x.flatten(0, 1)).gallery("a", x)
    assert (gallery.rows, gallery.columns, gallery.width, gallery.height) == (2, 3, 6, 4)
    assert gallery.file == "a.png" and gallery.style == "picture"
    sheet = np.asarray(Image.open(tmp_path / "a.png"))
    assert sheet.shape == (8, 18)
    tile = sheet[4:8, 12:18]
    assert np.array_equal(tile, (255 * x[1, 2, 0]).round().byte().numpy())


def test_large_sheets_are_jpegs_and_large_pictures_are_made_smaller(tmp_path):
    x = torch.rand(1, 120, 3, 192, 100, generator=generator(0))
    gallery = Painter(tmp_path, "image", x[0]).gallery("a", x)
    assert gallery.file == "a.jpg" and (gallery.width, gallery.height) == (50, SIDE)
    with Image.open(tmp_path / "a.jpg") as sheet:
        assert sheet.size == (120 * 50, SIDE) and sheet.mode == "RGB"


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_three_channels_are_colour_and_all_others_grey(channels):
    x = torch.rand(1, 1, channels, 4, 4, generator=generator(0))
    assert as_pixels(x, x[0]).shape[-1] == (3 if channels == 3 else 1)


def test_black_and_white_are_0_and_1_unless_the_data_leave_them():
    x = torch.tensor([0.0, 0.5, 1.2]).reshape(1, 1, 1, 1, 3)
    assert as_pixels(x, x[0].clamp(0, 1)).flatten().tolist() == [0, 128, 255]
    wide = torch.tensor([-3.0, 0.0, 3.0]).reshape(1, 1, 1, 1, 3)
    assert as_pixels(wide, wide[0]).flatten().tolist() == [0, 128, 255]


def test_a_signal_is_a_line_with_up_upwards(tmp_path):
    x = torch.stack([torch.linspace(0, 1, 500), torch.zeros(500)]).reshape(1, 1, 2, 500)
    gallery = Painter(tmp_path, "signal", x[0]).gallery("a", x)
    rising, flat = (np.array(stroke).reshape(-1, 2) for stroke in gallery.strokes[0][0])
    assert gallery.style == "line" and len(rising) == 128
    assert (np.diff(rising[:, 0]) > 0).all() and (np.diff(rising[:, 1]) <= 0).all()
    assert rising[-1, 1] == pytest.approx(0.06 * BOX, abs=1) and set(flat[:, 1]) == {round(0.94 * BOX)}


def test_a_turn_about_any_axis_moves_the_dots_of_a_cloud(tmp_path):
    cloud = torch.randn(400, 3, generator=generator(0))
    shown = []
    for axis in range(3):
        flipped = -cloud
        flipped[:, axis] = cloud[:, axis]  # half a turn about this axis
        gallery = Painter(tmp_path, "points", cloud[None]).gallery("a", torch.stack([cloud, flipped])[None])
        here, turned = (np.array(frame[0]) for frame in gallery.strokes[0])
        assert len(here) == 2 * 160 and here.min() >= 0 and here.max() <= BOX
        shown.append(np.abs(here - turned).max())
    assert min(shown) > 100


def test_coordinates_are_dots_in_front_of_the_data_and_features_nothing(tmp_path):
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-2.0, 0.0]])
    behind = dots_behind(x, torch.tensor([0, 1, 0]), 2)
    gallery = Painter(tmp_path, "coordinates", x, behind).gallery("a", x[None])
    (right,), (up,), (left,) = gallery.strokes[0]
    assert right == [720, 500] and up == [500, 280] and left == [60, 500]
    assert gallery.backdrop == ([720, 500, 60, 500], [500, 280])
    assert dots_behind(x, x[:, :1], 0) == ([720, 500, 500, 280, 60, 500],)
    assert Painter(tmp_path, "features", torch.rand(2, 5)).gallery("a", torch.rand(1, 2, 5)) is None
