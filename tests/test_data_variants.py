"""Planted truths: what was planted is what can be read back from the images."""

import math

import pytest
import torch
from scipy import ndimage

from augury.core.rng import generator
from augury.data import variants
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.data.variants import plant, resample, rotations
from refusal import refused


def blobs(n, shape=(33, 33), at=(0.0, 0.0), sigma=1.5, dtype=torch.float64):
    """Images of one Gaussian blob, `at` pixels right of and below the centre."""
    H, W = shape
    y = torch.arange(H, dtype=dtype) - (H - 1) / 2 - at[1]
    x = torch.arange(W, dtype=dtype) - (W - 1) / 2 - at[0]
    image = torch.exp(-(y[:, None] ** 2 + x[None, :] ** 2) / (2 * sigma**2))
    return image.expand(n, 1, H, W).contiguous()


def centroid(x):
    """Centre of mass of every image, in pixels right of and below the centre; and its spread."""
    H, W = x.shape[-2:]
    rows = torch.arange(H, dtype=x.dtype) - (H - 1) / 2
    cols = torch.arange(W, dtype=x.dtype) - (W - 1) / 2
    mass = x.sum((1, 2, 3))
    cx, cy = (x * cols).sum((1, 2, 3)) / mass, (x * rows[:, None]).sum((1, 2, 3)) / mass
    spread = ((x * cols**2).sum((1, 2, 3)) / mass - cx**2).sqrt()
    return cx, cy, spread


def data_of(x, n_test=0):
    y = torch.arange(len(x)) % 2
    return Dataset(x, y, x[:n_test].clone(), y[:n_test])


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_quarter_turns_are_rot90(k):
    x = torch.rand(2, 3, 9, 9, dtype=torch.float64)
    turned = resample(x, rotations(torch.full((2,), 90.0 * k, dtype=torch.float64)))
    assert torch.allclose(turned, x.rot90(k, (2, 3)), atol=1e-12)


@pytest.mark.parametrize("shape", [(9, 9), (7, 12), (12, 7)])
def test_whole_pixel_shifts_move_pixels(shape):
    x = torch.rand(1, 1, *shape, dtype=torch.float64)
    shift = torch.tensor([[2.0, -1.0]], dtype=torch.float64) / (min(shape) / 2)
    moved = resample(x, variants.translations(shift))
    assert torch.allclose(moved[..., :-1, 2:], x[..., 1:, :-2], atol=1e-12)
    assert moved[..., -1, :].abs().max() < 1e-12 and moved[..., :2].abs().max() < 1e-12


def test_any_angle_agrees_with_scipy_and_is_rigid_on_oblong_images():
    x = blobs(1, (31, 31), at=(6, -3))
    ours = resample(x, rotations(torch.tensor([37.0], dtype=torch.float64)))[0, 0]
    # Counter-clockwise as seen, like ours; borders differ, where the blob is below 1e-7.
    theirs = torch.from_numpy(ndimage.rotate(x[0, 0].numpy(), 37.0, reshape=False, order=1))
    assert torch.allclose(ours, theirs, atol=1e-6)
    x = blobs(1, (21, 61), at=(4, 0))
    cx, cy, _ = centroid(resample(x, rotations(torch.tensor([90.0], dtype=torch.float64))))
    assert abs(float(cx)) < 1e-2 and abs(float(cy) + 4) < 1e-2


@pytest.mark.parametrize(("factor", "spread"), [(2.0, 3.0), (0.8, 1.2)])
def test_scaling_grows_the_image(factor, spread):
    x = blobs(1, (65, 65), sigma=1.5)
    found = centroid(resample(x, variants.scalings(torch.tensor([math.log(factor)], dtype=torch.float64))))[2]
    assert float(found) == pytest.approx(spread, rel=0.05)


@pytest.mark.parametrize(("name", "width"), [("rotated", 180.0), ("partially_rotated", 90.0)])
def test_planted_angles_are_uniform_up_to_the_width(name, width):
    data = plant(data_of(blobs(4000, at=(9, 0)), n_test=1000), name)
    assert data.planted == {"rotation": width} and data.source.endswith(name)
    for x in (data.x_train, data.x_test):
        cx, cy, _ = centroid(x)
        angle = torch.rad2deg(torch.atan2(-cy, cx)) / width
        _uniform(angle, 0.02)
    assert not torch.equal(data.x_train[:1000], data.x_test)


def test_planted_shifts_are_uniform_in_both_axes_and_scales_log_uniform_and_joint():
    data = plant(data_of(blobs(4000)), "translated")
    assert data.planted == {"translate_x": 8.0, "translate_y": 8.0}
    cx, cy, _ = centroid(data.x_train)
    _uniform(cx / 8, 0.02)
    _uniform(cy / 8, 0.02)
    assert abs(float((cx * cy).mean())) < 1.0  # independent: the mean of 64 u v has deviation .34
    data = plant(data_of(blobs(2000, (65, 65), sigma=3.0)), "scaled")
    assert data.planted == {"scale_x": 2.0, "scale_y": 2.0}
    _, _, spread = centroid(data.x_train)
    _, _, other = centroid(data.x_train.transpose(2, 3))
    assert torch.allclose(spread, other, rtol=1e-6)
    _uniform((spread / 3.0).log() / math.log(2), 0.05)


def _uniform(u, slack):
    """The draws fill [-1, 1], and no more, evenly."""
    assert u.abs().max() <= 1 + slack
    assert (u.sort().values - torch.linspace(-1, 1, len(u), dtype=u.dtype)).abs().max() < 0.06 + slack


def test_combinations_act_in_the_order_written():
    x = blobs(500, (65, 65), at=(10, 0))
    first = plant(data_of(x), "rotated+translated", seed=4)
    other = plant(data_of(x), "translated+rotated", seed=4)
    assert first.planted == other.planted == {"rotation": 180.0, "translate_x": 8.0, "translate_y": 8.0}
    eps = torch.rand(500, 2, 2, generator=generator(4), dtype=torch.float64) * 2 - 1
    angle, shift = math.pi * eps[:, 0, 0], 8 * eps[:, 1]
    expected = 10 * torch.stack([angle.cos(), -angle.sin()], 1) + shift  # turned, then shifted
    assert torch.allclose(torch.stack(centroid(first.x_train)[:2], 1), expected, atol=0.05)
    angle, shift = math.pi * eps[:, 1, 0], 8 * eps[:, 0]
    at = torch.tensor([10.0, 0.0]) + shift  # shifted, then turned
    c, s = angle.cos(), angle.sin()
    expected = torch.stack([c * at[:, 0] + s * at[:, 1], -s * at[:, 0] + c * at[:, 1]], 1)
    assert torch.allclose(torch.stack(centroid(other.x_train)[:2], 1), expected, atol=0.05)


def test_draws_replay_and_depend_neither_on_how_many_follow_nor_on_chunks(monkeypatch):
    x = torch.rand(50, 1, 9, 9)
    whole, part = plant(data_of(x), "rotated", seed=5), plant(data_of(x[:20]), "rotated", seed=5)
    assert torch.equal(whole.x_train[:20], part.x_train)
    assert torch.equal(plant(data_of(x), "rotated", seed=5).x_train, whole.x_train)
    assert not torch.equal(plant(data_of(x), "rotated", seed=6).x_train, whole.x_train)
    x, T = torch.rand(23, 2, 9, 9), rotations(torch.linspace(0, 360, 23, dtype=torch.float64))
    at_once = resample(x, T)
    monkeypatch.setattr("augury.data.variants._PIXELS_AT_ONCE", 400)
    assert torch.equal(resample(x, T), at_once)


@pytest.mark.parametrize("name", [*variants.VARIANTS, "rotated+scaled", "translated+scaled"])
def test_labels_and_range_stay(name):
    data = load("mnist5k", subset=50)
    planted = plant(data, name)
    assert torch.equal(planted.y_train, data.y_train) and planted.x_train.shape == data.x_train.shape
    assert planted.x_train.min() >= 0 and planted.x_train.max() <= 1 + 1e-6
    assert not torch.equal(planted.x_train, data.x_train)
    via_load = load("mnist5k", subset=50, variant=name)
    assert torch.equal(via_load.x_train, planted.x_train) and via_load.planted == planted.planted


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rotatd", "Did you mean 'rotated'"),
        ("rotated+transalted", "Did you mean 'translated'"),
        ("rotated+partially_rotated", "plants rotation twice"),
    ],
)
def test_unknown_variants_are_named(name, message):
    refused(message, load, "mnist5k", variant=name)


def test_variants_want_images_with_classes():
    refused("images with class labels", load, (torch.zeros(4, 2), [0, 1, 0, 1]), variant="rotated")
    refused("images with class labels", load, (torch.rand(5, 8, 8), torch.rand(5, 2)), variant="rotated")


def test_coloured_rotated_tasks_share_images_and_tell_the_truth():
    base = data_of(blobs(2100, at=(9, 0)).float(), n_test=210)
    tasks = variants.coloured_rotated_tasks(base, seed=1)
    assert set(tasks) == set(variants.DESCRIPTORS) and tasks["digit"].x_train is tasks["colour"].x_train
    x, angle, colour = tasks["digit"].x_train, tasks["rotation"].y_train, tasks["colour"].y_train
    assert x.shape == (2100, 3, 33, 33)
    mass = x.sum((2, 3))
    assert torch.equal(mass.argmax(1), colour) and (mass > 0).sum(1).max() == 1
    cx, cy, _ = centroid(x.sum(1, keepdim=True).double())
    found = torch.rad2deg(torch.atan2(-cy, cx))
    assert torch.allclose(found, torch.tensor(variants.ANGLES, dtype=torch.float64)[angle], atol=0.5)
    cells = (angle * 3 + colour).bincount(minlength=21)
    assert cells.min() > 60 and cells.max() < 145  # 100 expected in each, deviation 10
    assert torch.equal(tasks["digit"].y_train, base.y_train)
    assert [len(tasks[t].class_names) for t in ("digit", "rotation", "colour")] == [2, 7, 3]
    assert tasks["rotation"].planted == {"rotation": 0.0} and tasks["digit"].planted == {"rotation": 90.0}


def test_coloured_rotated_through_load():
    data = load("mnist5k", variant="coloured_rotated", task="colour", subset=30, seed=2)
    assert data.class_names == variants.COLOURS and data.input_shape == (3, 28, 28) and len(data.x_train) == 30
    same = load("mnist5k", variant="coloured_rotated", subset=30, seed=2)
    assert same.class_names == tuple("0123456789") and torch.equal(same.x_train, data.x_train)
    refused("Did you mean 'colour'", load, "mnist5k", variant="coloured_rotated", task="color")
    refused("grey images", variants.coloured_rotated, data_of(torch.rand(4, 3, 8, 8)))
