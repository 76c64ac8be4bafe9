"""Bad input: every message says what must hold, what came, and what to do."""

import numpy as np
import pytest
import torch
from PIL import Image

from augury.core.errors import InputError
from augury.data import folder as folder_module
from augury.data.dataset import Dataset, check_pair
from augury.data.load import load
from data_doubles import four_arrays, image_folder, picture

X, Y = np.random.default_rng(0).random((8, 6, 6)), np.arange(8) % 2


def refused(source, message, **options):
    with pytest.raises(InputError, match=message):
        load(source, **options)


def test_empty_folder(tmp_path):
    refused(tmp_path, "must hold one sub-folder of images for each class; it holds nothing")


def test_images_without_classes(tmp_path):
    picture(8, 8).save(tmp_path / "x.png")
    refused(tmp_path, "1 images and no sub-folder. Sort images")


def test_empty_class(tmp_path):
    image_folder(tmp_path, {"cat": 2, "dog": 0})
    (tmp_path / "dog/notes.txt").write_text("no image")
    refused(tmp_path, "class folder .*dog must hold at least one readable image")


def test_one_class_only(tmp_path):
    image_folder(tmp_path, {"cat": 3})
    refused(tmp_path, r"at least two classes; got one only \('cat'\)")
    refused((X, np.zeros(8, int)), "at least two classes")


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


def test_skipped_files_of_a_test_set_count_too(tmp_path):
    for part in ("train", "test"):
        image_folder(tmp_path / part, {"cat": 2, "dog": 2})
        (tmp_path / part / "dog/bad.png").write_bytes(b"no")
    assert len(load(tmp_path, skip_bad=True).skipped) == 2


def test_a_class_of_bad_files_only_is_refused(tmp_path):
    image_folder(tmp_path, {"cat": 2, "dog": 0})
    (tmp_path / "dog/bad.png").write_bytes(b"no")
    refused(tmp_path, "class folder .*dog must hold", skip_bad=True)


def test_float_image_with_nan_is_named(tmp_path):
    image_folder(tmp_path, {"cat": 2, "dog": 1})
    Image.fromarray(np.full((8, 8), np.nan, np.float32)).save(tmp_path / "dog/nan.tif")
    refused(tmp_path, r"cannot read image .*nan.tif: .*finite")
    assert len(load(tmp_path, skip_bad=True).skipped) == 1


def test_unseen_test_class(tmp_path):
    image_folder(tmp_path / "train", {"cat": 2, "dog": 2})
    image_folder(tmp_path / "test", {"cat": 2, "god": 2})
    refused(tmp_path, "every test class must occur in training; 'god' does not. Training has cat, dog")


def test_too_many_pixels(tmp_path, monkeypatch):
    image_folder(tmp_path, {"cat": 2, "dog": 2}, size=(32, 32))
    monkeypatch.setattr(folder_module, "LARGEST", 10_000)
    refused(tmp_path, "4 images of 32 x 32 would need .* Give a smaller size")
    assert load(tmp_path, size=16).input_shape == (1, 16, 16)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", ["train", "test"])
def test_pixels_that_are_not_finite(bad, part):
    x = X.copy()
    x[3, 2, 2] = bad
    parts = {"train": ((x, Y), (X, Y)), "test": ((X, Y), (x, Y))}[part]
    refused((x, Y), "data: inputs must be finite; example 3 holds")
    refused(
        parts[0], rf"{part}: inputs must be finite; example 3 holds NaN or infinity \(1 such", test=parts[1]
    )


def test_a_record_checks_its_inputs_too():
    x, y = torch.zeros(3, 2), torch.tensor([0, 1, 0])
    x[2, 1] = torch.nan
    with pytest.raises(InputError, match="test: inputs must be finite; example 2"):
        Dataset(torch.zeros(3, 2), y, x, y, kind="coordinates")


def test_large_finite_values_are_not_called_infinite():
    x = np.full((4, 2), 3e38, np.float32)
    assert load((x, [0, 1, 0, 1]), test_fraction=0.0).x_train.max() == np.float32(3e38)


def test_lengths_that_differ():
    refused((X, Y[:-1]), "inputs and labels must be of one length; got 8 and 7")
    refused((X, Y), "test: inputs and labels must be of one length; got 8 and 3", test=(X, Y[:3]))
    with pytest.raises(InputError, match="train: inputs and labels must be of one length; got 2 and 3"):
        check_pair(torch.zeros(2, 2), torch.zeros(3).long(), "coordinates", "classification", "train")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            np.array([0.5, 1, 0, 1, 0, 1, 0, 1]),
            "class labels must be integers; got float64, with 0.5 at position 0",
        ),
        (np.array([0, np.nan, 0, 1, 0, 1, 0, 1]), "with nan at position 1"),
        (np.eye(2)[Y].astype(int), r"look one-hot. Take y.argmax\(1\)"),
        (np.eye(2)[Y], "look one-hot"),
        (np.array(["a", None] * 4, dtype=object), "position 1 is None"),
        (np.array([{}] * 8), "Nothing is unpickled"),
    ],
)
def test_labels_that_are_not_integers(y, message):
    refused((X, y), message)


def test_float_labels_in_a_record():
    with pytest.raises(InputError, match=r"class labels must be integers; got torch.float32"):
        Dataset(torch.zeros(2, 2), torch.zeros(2), torch.zeros(0, 2), torch.zeros(0), kind="coordinates")


def test_labels_out_of_range(tmp_path):
    np.savez(tmp_path / "a.npz", **four_arrays(), classes=np.array(["a", "b"]))
    refused(tmp_path / "a.npz", "labels must lie between 0 and 1, one for each class name; got 0 to 9")
    with pytest.raises(InputError, match=r"labels must lie between 0 and 1, .* got -1 to 1"):
        Dataset(
            torch.zeros(2, 2),
            torch.tensor([-1, 1]),
            torch.zeros(0, 2),
            torch.zeros(0).long(),
            kind="coordinates",
        )


def test_targets_that_are_not_finite():
    y = np.ones((8, 2))
    y[5, 1] = np.inf
    refused((X, y), "data: targets must be finite; example 5 holds")
    refused((X, y[:, 1]), "train: targets must be finite", task="regression", test=(X, np.ones(8)))


@pytest.mark.parametrize("shape", [(3, 3), (2, 28), (28, 3)])
def test_images_too_small(shape):
    x = np.zeros((8, 1, *shape))
    refused((x, Y), rf"at least 4 pixels on each side; got {shape[0]} x {shape[1]}", kind="image")


def test_small_images_in_a_folder_and_a_small_size(tmp_path):
    image_folder(tmp_path, {"cat": 2, "dog": 2}, size=(3, 3))
    refused(tmp_path, "at least 4 pixels on each side; got 3 x 3")
    refused(tmp_path, "size must be at least 4", size=3)
    assert load(tmp_path, size=4).input_shape == (1, 4, 4)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.full((8, 6, 6), 200.0), "look like bytes. Divide by 255"),
        (np.full((8, 6, 6), 300), "integer pixels must lie in 0 to 255"),
        (np.full((8, 6, 6), -1), "integer pixels must lie in 0 to 255"),
        (np.array([["a"] * 8] * 8), "inputs must be numbers"),
    ],
)
def test_pixels_in_a_strange_range(x, message):
    refused((x, Y), message)


def test_shapes_that_do_not_fit_their_kind():
    refused(
        (np.zeros((8, 5)), Y), r"kind 'points' must be \[N, P, 3\]; got \[7, 5\]|got \[6, 5\]", kind="points"
    )
    refused((np.zeros((8, 5)), Y), "Did you mean 'image'", kind="images")
    refused((X, Y), r"one shape; got \[1, 6, 6\] and \[1, 5, 5\]", test=(X[:, :5, :5], Y))
    refused(([[1.0, 2.0], [1.0]], [0, 1]), "examples must all have one shape")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mnst5k", "Did you mean 'mnist5k'"),
        ("cifar-10", "Did you mean 'cifar10'"),
        ("nowhere/at/all", "no file or folder of that name"),
    ],
)
def test_unknown_name(name, message):
    refused(name, message)
    refused(name, "data must be one of cifar10, .* a folder of images or an .npz file; got")


def test_files_of_other_sorts(tmp_path):
    (tmp_path / "a.csv").write_text("1,2")
    refused(tmp_path / "a.csv", "a data file must be an .npz")
    (tmp_path / "b.npz").write_text("hello")
    refused(tmp_path / "b.npz", "must be a whole .npz file of plain arrays")
    np.savez(tmp_path / "c.npz", images=X)
    refused(tmp_path / "c.npz", "must hold x_train, y_train, x_test, y_test .* it holds images")
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subset": 0}, "subset must be between 1 and"),
        ({"subset": 9}, "subset must be between 1 and 6"),
        ({"test_fraction": 1.0}, "test_fraction must be at least 0 and below 1; got 1.0"),
        ({"task": "clasification"}, "Did you mean 'classification'"),
        ({"kind": "signal", "size": 8}, "size is for images"),
    ],
)
def test_options_that_do_not_fit(options, message):
    refused((X, Y), message, **options)


def test_options_that_a_named_set_does_not_take():
    refused("mnist5k", "task of data set 'mnist5k' must be 'classification'", task="regression")
    refused("mnist5k", "test cannot be chosen", test=(X, Y))


def test_an_empty_training_set():
    refused((X[:0], Y[:0]), "at least one example; got none")
