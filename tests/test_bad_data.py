"""Bad input: every message says what must hold, what came, and what to do."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from augury.core.errors import InputError
from augury.data.dataset import Dataset, check_pair
from augury.data.load import checked_size, load
from data_doubles import four_arrays, image_folder, picture

X, Y = np.random.default_rng(0).random((8, 6, 6)), np.arange(8) % 2


def refused(source, message, **options):
    with pytest.raises(InputError, match=message):
        load(source, **options)


FOLDERS = {
    "must hold one sub-folder of images for each class; it holds nothing": lambda path: None,
    "1 images and no sub-folder. Sort images": lambda path: picture(8, 8).save(path / "x.png"),
    "class folder .*dog must hold at least one readable image": lambda path: image_folder(path, {"cat": 2, "dog": 0}),
    r"at least two classes; got one only \('cat'\)": lambda path: image_folder(path, {"cat": 3}),
    "at least 4 pixels on each side; got 3 x 3": lambda path: image_folder(path, {"a": 2, "b": 2}, size=(3, 3)),
    "every test class must occur in training; 'god' does not. Training has cat, dog": lambda path: (
        image_folder(path / "train", {"cat": 2, "dog": 2}), image_folder(path / "test", {"cat": 2, "god": 2})
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", FOLDERS)
def test_folders_that_hold_no_classes_of_images(tmp_path, message):
    FOLDERS[message](tmp_path)
    refused(tmp_path, message)


BAD_FILES = {
    "text": lambda path: path.write_bytes(b"this is not an image"),
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2]),
    "damaged": lambda path: path.write_bytes(path.read_bytes()[:60] + b"\0" * 40 + path.read_bytes()[100:]),
}


@pytest.mark.parametrize("damage", BAD_FILES.values(), ids=BAD_FILES)
def test_corrupt_image_is_named_or_skipped_and_counted(tmp_path, damage):
    image_folder(tmp_path, {"cat": 3, "dog": 3})
    noise = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    bad = tmp_path / "dog/bad.png"
    Image.fromarray(noise).save(bad)
    damage(bad)
    refused(tmp_path, r"cannot read image .*dog/bad.png: .*--skip-bad")
    data = load(tmp_path, skip_bad=True, test_fraction=0.0)
    assert data.skipped == (str(bad),) and data.y_train.bincount().tolist() == [3, 3]
    for part in ("train", "test"):
        image_folder(tmp_path / "both" / part, {"cat": 2, "dog": 2})
        shutil.copy(bad, tmp_path / "both" / part / "dog")
    assert len(load(tmp_path / "both", skip_bad=True).skipped) == 2
    image_folder(tmp_path / "none", {"cat": 2, "dog": 0})
    shutil.copy(bad, tmp_path / "none" / "dog")
    refused(tmp_path / "none", "class folder .*dog must hold", skip_bad=True)


def test_float_image_with_nan_is_named(tmp_path):
    image_folder(tmp_path, {"cat": 2, "dog": 1})
    Image.fromarray(np.full((8, 8), np.nan, np.float32)).save(tmp_path / "dog/nan.tif")
    refused(tmp_path, r"cannot read image .*nan.tif: .*finite")
    assert len(load(tmp_path, skip_bad=True).skipped) == 1


def test_sizes(tmp_path):
    image_folder(tmp_path, {"cat": 2, "dog": 2}, size=(32, 32))
    assert load(tmp_path, size=16).input_shape == (1, 16, 16)
    refused(tmp_path, "size must be at least 4", size=3)
    small = image_folder(tmp_path / "small", {"cat": 2, "dog": 2}, size=(3, 3))
    assert load(small, size=4).input_shape == (1, 4, 4)


@pytest.mark.parametrize("keep", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", ["train", "test"])
def test_pixels_that_are_not_finite(keep, part):
    x = X.copy()
    x[3, 2, 2] = keep
    train, test = ((x, Y), (X, Y)) if part == "train" else ((X, Y), (x, Y))
    refused((x, Y), "data: inputs must be finite; example 3 holds")
    refused(train, rf"{part}: inputs must be finite; example 3 holds NaN or infinity \(1 such", test=test)
    large = np.full((4, 2), 3e38, np.float32)  # is not called infinite
    assert load((large, [0, 1, 0, 1]), test_fraction=0.0).x_train.max() == np.float32(3e38)


TARGETS = np.where(np.arange(16).reshape(8, 2) == 11, np.inf, 1.0)
ONE_HOT = np.eye(2)[Y]
REFUSED = [
    ((X, Y[:-1]), "inputs and labels must be of one length; got 8 and 7"),
    ((X, Y), "test: inputs and labels must be of one length; got 8 and 3", {"test": (X, Y[:3])}),
    ((X, Y * 0), "at least two classes"),
    ((X, np.array([0.5, 1, 0, 1, 0, 1, 0, 1])), "class labels must be integers; got float64, with 0.5 at position 0"),
    ((X, np.array([0, np.nan, 0, 1, 0, 1, 0, 1])), "data: labels must be finite; example 1"),
    ((X, ONE_HOT.astype(int)), r"look one-hot. Take y.argmax\(1\)"),
    ((X, ONE_HOT), "look one-hot"),
    ((X, np.array(["a", None] * 4, dtype=object)), "position 1 is None"),
    ((X, np.array([{}] * 8)), "must hold real numbers"),
    ((X, TARGETS), "data: targets must be finite; example 5 holds"),
    ((X, TARGETS[:, 1]), "data: targets must be finite; example 5", {"task": "regression"}),
    ((X, TARGETS[:, 1]), "train: targets must be finite", {"task": "regression", "test": (X, np.ones(8))}),
    ((np.zeros((8, 1, 3, 3)), Y), "at least 4 pixels on each side; got 3 x 3", {"kind": "image"}),
    ((np.zeros((8, 1, 2, 28)), Y), "at least 4 pixels on each side; got 2 x 28", {"kind": "image"}),
    ((np.zeros((8, 1, 28, 3)), Y), "at least 4 pixels on each side; got 28 x 3", {"kind": "image"}),
    ((np.full((8, 6, 6), 200.0), Y), "look like bytes. Pass them as uint8"),
    ((np.full((8, 6, 6), 300), Y), "integer pixels must lie in 0 to 255"),
    ((np.full((8, 6, 6), -1), Y), "integer pixels must lie in 0 to 255"),
    ((np.array([["a"] * 8] * 8), Y), "inputs must be numbers"),
    ((np.zeros((8, 5)), Y), r"kind 'points' must be \[N, P, 3\]; got \[[67], 5\]", {"kind": "points"}),
    ((np.zeros((8, 5)), Y), "Did you mean 'image'", {"kind": "images"}),
    ((X, Y), r"one shape; got \[1, 6, 6\] and \[1, 5, 5\]", {"test": (X[:, :5, :5], Y)}),
    (([[1.0, 2.0], [1.0]], [0, 1]), "examples must all have one shape"),
    ((X[:0], Y[:0]), "at least one example; got none"),
    ("mnst5k", "data must be one of .*cifar10, .* a folder of images or an .npz file; got.*Did you mean 'mnist5k'"),
    ("cifar-10", "Did you mean 'cifar10'"),
    ("nowhere/at/all", "no file or folder of that name"),
    ("mnist5k", "task of data set 'mnist5k' must be 'classification'", {"task": "regression"}),
    ("mnist5k", "test cannot be chosen", {"test": (X, Y)}),
    ((X, Y), "subset must be between 1 and", {"subset": 0}),
    ((X, Y), "subset must be between 1 and 6", {"subset": 9}),
    ((X, Y), "test_fraction must be at least 0 and below 1; got 1.0", {"test_fraction": 1.0}),
    ((X[:, 0], Y), "variants are for images .* got data of kind 'features'", {"variant": "rotated"}),
    ((X, Y), "Did you mean 'classification'", {"task": "clasification"}),
    ((X + 1j, Y), "must hold real numbers"),
    (None, "got NoneType.$"),
    ((X, Y), "size is for images", {"kind": "signal", "size": 8}),
]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[1])
def test_arrays_names_and_options_that_do_not_fit(row):
    source, message, *options = row
    refused(source, message, **(options[0] if options else {}))


@pytest.mark.parametrize("size", ["8", 8.5, (8, 8, 3)])
def test_a_size_is_one_number_or_two(size):
    with pytest.raises(InputError, match="size must be a number of pixels"):
        checked_size(size)


TWO = torch.zeros(2, 2)
RECORDS = {
    "test: inputs must be finite; example 1": ([0, 1], TWO + torch.tensor([[0.0], [torch.nan]]), [0, 1]),
    r"class labels must be integers; got torch.float32": ([0.0, 1.0], TWO[:0], []),
    r"labels must lie between 0 and 1, .* got -1 to 1": ([-1, 1], TWO, [0, 1]),
}


@pytest.mark.parametrize("message", RECORDS)
def test_a_record_checks_its_parts_too(message):
    y, x_test, y_test = RECORDS[message]
    with pytest.raises(InputError, match=message):
        Dataset(TWO, torch.tensor(y), x_test, torch.tensor(y_test), kind="coordinates")
    with pytest.raises(InputError, match="train: inputs and labels must be of one length; got 2 and 3"):
        check_pair(TWO, torch.zeros(3).long(), "coordinates", "classification", "train")


def test_files_of_other_sorts(tmp_path):
    (tmp_path / "a.csv").write_text("1,2")
    refused(tmp_path / "a.csv", "a data file must be an .npz")
    (tmp_path / "b.npz").write_text("hello")
    refused(tmp_path / "b.npz", "must be a whole .npz file of plain arrays")
    np.savez(tmp_path / "c.npz", images=X)
    refused(tmp_path / "c.npz", "must hold x_train, y_train, x_test, y_test .* it holds images")
    np.savez(tmp_path / "e.npz", **four_arrays(), classes=np.array(["a", "b"]))
    refused(tmp_path / "e.npz", "labels must lie between 0 and 1, one for each class name; got 0 to 9")
    np.save(tmp_path / "d.npy", X)
    (tmp_path / "d.npy").rename(tmp_path / "d.npz")
    refused(tmp_path / "d.npz", "must be a whole .npz file")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("keep", [0.1, 0.9])
def test_truncated_npz(tmp_path, compressed, keep):
    path = tmp_path / "a.npz"
    (np.savez_compressed if compressed else np.savez)(path, **four_arrays())
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    refused(path, "a.npz must be a whole .npz file of plain arrays; it cannot be read")


def test_pickles_are_never_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    np.savez(tmp_path / "a.npz", x=np.array([Trap()], dtype=object), y=Y)
    refused(tmp_path / "a.npz", "pickled objects")
