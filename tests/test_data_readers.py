"""What the readers make of data as people keep them: exact pixels, exact labels, stated rules."""

import numpy as np
import pytest
import torch
from PIL import Image

from augury.data.load import load
from data_doubles import four_arrays, image_folder, picture


def test_folder_gives_pixels_labels_and_names(tmp_path):
    folder = image_folder(tmp_path / "pets", {"dog": 5, "cat": 10})
    data = load(folder, test_fraction=0.2)
    assert data.class_names == ("cat", "dog") and data.kind == "image" and data.input_shape == (1, 8, 8)
    assert len(data.y_train) == 12 and data.y_test.bincount().tolist() == [2, 1]
    x, y = torch.cat([data.x_train, data.x_test]), torch.cat([data.y_train, data.y_test])
    for label, count in enumerate([10, 5]):
        values = x[y == label].flatten(1)
        assert torch.equal(values.amin(1), values.amax(1))
        assert values[:, 0].sort().values.mul(255).round().tolist() == [10 * i for i in range(count)]


def test_split_is_seeded_and_disjoint(tmp_path):
    folder = image_folder(tmp_path / "pets", {"a": 10, "b": 10})
    first, again, other = load(folder, seed=1), load(folder, seed=1), load(folder, seed=2)
    assert torch.equal(first.x_train, again.x_train) and torch.equal(first.y_test, again.y_test)
    assert not torch.equal(first.x_train, other.x_train)
    keys = [(float(v), int(c)) for x, y in ((first.x_train, first.y_train), (first.x_test, first.y_test))
            for v, c in zip(x[:, 0, 0, 0], y, strict=True)]  # fmt: skip
    assert len(set(keys)) == 20


def test_folder_with_train_and_test(tmp_path):
    image_folder(tmp_path / "pets/train", {"a": 3, "b": 4})
    image_folder(tmp_path / "pets/test", {"b": 2, "a": 1})
    data = load(tmp_path / "pets")
    assert data.y_train.tolist() == [0] * 3 + [1] * 4 and data.y_test.tolist() == [0, 1, 1]
    apart = load(tmp_path / "pets/train", test=tmp_path / "pets/test")
    assert torch.equal(apart.x_test, data.x_test)
    image_folder(tmp_path / "more", {"a": 2, "b": 2})
    assert len(load(tmp_path / "pets", test=tmp_path / "more").x_test) == 4


@pytest.mark.parametrize(
    ("mode", "ending", "expected"),
    [
        ("L", "png", [0.2]),
        ("1", "png", [0.0]),
        ("LA", "png", [0.2]),
        ("RGB", "png", [0.2, 0.2, 0.2]),
        ("P", "gif", [0.2, 0.2, 0.2]),
        ("CMYK", "tif", [0.2, 0.2, 0.2]),
        ("L", "bmp", [0.2]),
        ("L", "webp", [0.2, 0.2, 0.2]),
    ],
)
def test_every_mode_becomes_pixels_from_0_to_1(tmp_path, mode, ending, expected):
    for name in "ab":
        (tmp_path / name).mkdir()
        picture(6, 5, mode, value=51).save(
            tmp_path / name / f"x.{ending}", **({"lossless": True} if ending == "webp" else {})
        )
    data = load(tmp_path, test_fraction=0.0)
    assert data.x_train.shape == (2, len(expected), 6, 5)
    assert torch.allclose(data.x_train[0, :, 2, 2], torch.tensor(expected), atol=1e-6)


def test_sixteen_bits_keep_their_precision(tmp_path):
    values = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.fromarray(values).save(tmp_path / name / "x.png")
    x = load(tmp_path, test_fraction=0.0).x_train
    assert np.array_equal(x[0, 0].numpy(), values.astype(np.float32) / 65535)
    assert len(x.unique()) == 64


def test_transparent_pixels_are_black_and_colour_spreads_to_all(tmp_path):
    image_folder(tmp_path, {"grey": 1}, mode="L")
    glass = Image.new("RGBA", (8, 8), (255, 0, 0, 0))
    glass.paste((0, 255, 0, 255), (0, 0, 4, 8))
    (tmp_path / "green").mkdir()
    glass.save(tmp_path / "green/x.png")
    x = load(tmp_path, test_fraction=0.0)
    green = x.x_train[x.y_train == x.class_names.index("green")][0]
    assert x.input_shape == (3, 8, 8)
    assert green[:, 0, 0].tolist() == [0, 1, 0] and green[:, 0, 7].tolist() == [0, 0, 0]


def test_mixed_sizes_are_cut_at_the_centre_then_resampled(tmp_path):
    image_folder(tmp_path, {"a": 3, "b": 2}, size=(8, 8))
    wide = np.zeros((16, 32), np.uint8)
    wide[:, 8:24] = 200  # the centre square; the rest is cut off
    Image.fromarray(wide).save(tmp_path / "a/wide.png")
    data = load(tmp_path, test_fraction=0.0)
    assert data.input_shape == (1, 8, 8)
    brightest = data.x_train[data.x_train.flatten(1).amax(1).argmax()]
    assert torch.allclose(brightest[..., 1:-1], torch.tensor(200 / 255), atol=1e-6)
    assert brightest.min() > 0.6  # squashed to 8 x 8, the outer quarters would be black
    assert load(tmp_path, size=(5, 7)).input_shape == (1, 5, 7)
    assert load(tmp_path, size=6).input_shape == (1, 6, 6)


def test_shrinking_does_not_alias(tmp_path):
    stripes = np.tile(np.array([0, 255], np.uint8), (32, 16))  # one pixel black, one white
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.fromarray(stripes).save(tmp_path / name / "x.png")
    x = load(tmp_path, size=8, test_fraction=0.0).x_train
    assert (x[..., 1:-1] - 0.5).abs().max() < 0.05


def test_orientation_tag_is_obeyed(tmp_path):
    tall = picture(6, 4, "L")
    exif = tall.getexif()
    exif[0x0112] = 6
    for name in "ab":
        (tmp_path / name).mkdir()
        tall.save(tmp_path / name / "x.png", exif=exif)
    x = load(tmp_path, test_fraction=0.0).x_train
    assert x.shape == (2, 1, 4, 6)
    upright = np.rot90(np.asarray(tall), -1).astype(np.float32) / 255
    assert np.array_equal(x[0, 0].numpy(), upright)


@pytest.mark.parametrize("layout", ["NHW", "NHWC", "NCHW"])
@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_arrays_of_bytes(layout, make):
    raw = np.random.default_rng(0).integers(0, 256, (10, 3, 6, 5), dtype=np.uint8)
    x = {"NHW": raw[:, 0], "NHWC": np.ascontiguousarray(raw.transpose(0, 2, 3, 1)), "NCHW": raw}[layout]
    y = np.arange(10) % 2
    data = load((make(x), make(y)), test_fraction=0.0)
    expected = torch.from_numpy(raw[:, :1] if layout == "NHW" else raw).float() / 255
    key = expected.flatten(1).sum(1)
    found = data.x_train.flatten(1).sum(1)
    assert torch.equal(data.x_train[found.argsort()], expected[key.argsort()])
    assert torch.equal(data.y_train[found.argsort()], torch.from_numpy(y)[key.argsort()])


def test_test_arrays_keep_their_order_and_are_left_alone():
    a = four_arrays()
    data = load((a["x_train"], a["y_train"]), test=(a["x_test"], a["y_test"]))
    assert np.array_equal(data.x_train[:, 0].numpy(), a["x_train"].astype(np.float32) / 255)
    assert data.y_test.tolist() == a["y_test"].tolist() and data.class_names == tuple("0123456789")
    x, y = np.ones((4, 2), np.float32), np.array([0, 1, 0, 1])
    data = load((x, y), test=(x, y))
    data.x_train.mul_(5)
    assert (x == 1).all()


def test_labels_of_every_sort_and_targets():
    x = np.zeros((4, 2))
    assert load((x, ["b", "a", "b", "a"]), test=(x, ["a"] * 4)).y_train.tolist() == [1, 0, 1, 0]
    gaps = load((x, [7, 3, 7, 3]), test=(x, [3, 3, 9, 7]))
    assert gaps.class_names == ("3", "7", "9") and gaps.y_test.tolist() == [0, 0, 2, 1]
    assert load((x, np.array([0.0, 1.0, 1.0, 0.0])), test=(x, [0, 1, 0, 1])).y_train.tolist() == [0, 1, 1, 0]
    assert load((x, np.array([[0], [1], [1], [0]])), test_fraction=0.0).task == "classification"
    x, y = np.zeros((10, 2)), np.arange(20.0).reshape(10, 2)
    data = load((x, y))
    assert data.task == "regression" and data.n_outputs == 2 and data.class_names == ()
    assert data.y_train.dtype == torch.float32 and len(data.y_test) == 2
    column = load((x, y[:, 0]), task="regression", test_fraction=0.0)
    assert column.y_train.shape == (10, 1) and sorted(column.y_train[:, 0].tolist()) == y[:, 0].tolist()
    landmarks = load((x, y.reshape(10, 1, 2)), test_fraction=0.0)
    assert landmarks.y_train.shape == (10, 2)


def test_npz(tmp_path):
    a = four_arrays()
    np.savez(tmp_path / "a.npz", **a, classes=np.array([f"c{i}" for i in range(10)]))
    data = load(tmp_path / "a.npz")
    assert data.class_names[3] == "c3" and np.array_equal(data.x_test[:, 0].numpy() * 255, a["x_test"])
    np.savez_compressed(tmp_path / "b.npz", x=a["x_train"], y=a["y_train"])
    assert len(load(str(tmp_path / "b.npz"), test_fraction=0.5).x_test) == 10
    assert len(load(tmp_path / "b.npz", test=tmp_path / "a.npz").x_test) == 20
    np.savez(tmp_path / "c.npz", train_images=a["x_train"], train_labels=a["y_train"][:, None],
             test_images=a["x_test"], test_labels=a["y_test"][:, None])  # fmt: skip
    assert load(tmp_path / "c.npz").y_test.tolist() == a["y_test"].tolist()


def test_a_dataset_passes_through_prints_in_one_line_and_subsets_are_nested():
    a = four_arrays(200)
    data = load((a["x_train"], a["y_train"]), test_fraction=0.0)
    assert load(data) is data
    few, more = load(data, subset=20, seed=3), load(data, subset=50, seed=3)
    assert torch.equal(more.x_train[:20], few.x_train) and len(few.x_train) == 20
    assert not torch.equal(load(data, subset=20, seed=4).x_train, few.x_train)
    data = load((np.zeros((10, 2)), np.arange(10) % 2))
    assert repr(data) == "Dataset(arrays: 8 + 2 points in the plane, 2 classes: 0, 1)"
