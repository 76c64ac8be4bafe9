"""Folders of large and mixed images: reduced to what the network can serve, one at a time, and said so."""

import numpy as np
import pytest
import torch
from PIL import Image

import augury
from augury.core.rng import generator
from augury.data.load import load
from augury.data.pictures import Header, common_size
from augury.methods.prepare import image_side, prepare
from augury.models.networks import build
from data_doubles import image_folder


def test_a_large_folder_is_reduced_to_the_side_of_its_network(tmp_path):
    folder = image_folder(tmp_path / "large", {"a": 4, "b": 4}, size=(300, 300))
    for model, side in ((None, 64), ("cnn", 64), ("mlp", 32), ("resnet_8_16", 48)):
        assert image_side(model, "lila") == side
        data = prepare(folder, model, "lila", None, {"epochs": 1}).data
        assert data.input_shape == (1, side, side)
        assert f"1 x {side} x {side} (resized from 300 x 300)" in data.describe()
    assert load(folder).input_shape == (1, 300, 300)  # a user's own network says what it takes
    own = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(300 * 300, 2))
    assert prepare(folder, own, "plain", None, {"epochs": 1}).data.input_shape == (1, 300, 300)
    assert load(folder, size=100, side=64).input_shape == (1, 100, 100)


def test_proportions_are_kept_where_images_agree_and_cropped_where_not(tmp_path):
    folder = image_folder(tmp_path / "wide", {"a": 4, "b": 4}, size=(150, 300))
    assert load(folder, side=64).input_shape == (1, 32, 64)
    assert "(resized from 150 x 300)" in load(folder, side=64).describe()
    mixed = tmp_path / "mixed"
    for k in range(10):
        (mixed / "ab"[k % 2]).mkdir(parents=True, exist_ok=True)
        Image.new("L", (200 + 10 * k, 100 + 7 * k), 20 * k).save(mixed / "ab"[k % 2] / f"{k}.png")
    data = load(mixed, side=64)
    assert data.input_shape == (1, 64, 64) and "(10 sizes, cropped at the centre)" in data.describe()


def test_the_size_of_a_folder():
    several = [Header(100 + k, 80 + k, False) for k in range(9)]
    assert common_size(several) == (84, 84)  # no two agree: the median of the shorter sides, square
    assert common_size([*several, *[Header(300, 400, False)] * 3]) == (300, 400)  # a quarter of them agree
    assert common_size([Header(300, 400, False)], side=64) == (48, 64)
    assert common_size([Header(20, 28, False)], side=64) == (20, 28)  # small images are not enlarged
    assert common_size([Header(20, 2000, False)], side=64) == (16, 64)  # nor reduced to nothing
    assert common_size([Header(9, 2000, False)], side=64) == (9, 64)


def test_a_large_jpeg_is_decoded_at_a_fraction_of_its_size(tmp_path):
    ramp = np.tile(np.linspace(0, 255, 2000).astype(np.uint8), (1600, 1))
    for k in range(4):
        (tmp_path / "ab"[k % 2]).mkdir(exist_ok=True)
        Image.fromarray(ramp).save(tmp_path / "ab"[k % 2] / f"{k}.jpg", quality=95)
    x = load(tmp_path, side=50).x_train
    assert x.shape[1:] == (1, 40, 50)
    truth = torch.from_numpy(ramp[0].reshape(50, 40).mean(1) / 255).float()
    assert (x[0, 0] - truth).abs().max() < 0.01


@pytest.mark.parametrize("model", ["mlp", "cnn", "resnet_8_8"])
@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 64, 64), (1, 100, 100), (3, 128, 96)])
def test_networks_take_every_size(model, shape):
    net = build(model, shape, 3, generator(0))
    x = torch.rand(2, *shape, generator=generator(0))
    assert net(x).shape == (2, 3)
    weights = sum(p.numel() for p in net.parameters())
    assert model == "mlp" or weights < 63_000  # convolutional ones do not grow with the image


def test_an_audit_reads_a_folder_in_the_size_of_the_model(tmp_path):
    folder = image_folder(tmp_path / "large", {"a": 6, "b": 6}, size=(90, 90))
    run = tmp_path / "run"
    augury.learn(folder, "mlp5", "plain", run=run, epochs=1)
    found = augury.audit(str(run), folder, "flip_x", corruptions=False, jacobian_images=0)
    assert found.group == "flip_x"
