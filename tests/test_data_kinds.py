"""Every kind of input: accepted with the line that says what was read, or refused with what to do.

`ACCEPTED` and `REFUSED` are the table of the documentation.
"""

from collections import UserDict

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_iris
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, TensorDataset, random_split

from augury.data.load import load
from augury.data.unlabelled import load_inputs
from data_doubles import image_folder, picture
from refusal import refused
from test_data_torch import Pictures

Y = np.arange(60) % 2
LABELS = np.where(Y, "dog", "cat")


def arrays(*shape, dtype=np.float32, n=60):
    values = np.random.default_rng(0).random((n, *shape))
    return (values * np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else values).astype(dtype)


def tensors(n=60):
    return TensorDataset(torch.rand(n, 3, 6, 6, generator=torch.Generator().manual_seed(0)), torch.arange(n) % 2)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(())


FRAME = pd.DataFrame({"a": Y + 0.5, "b": Y - 0.5, "c": 1.0, "Label": LABELS})
TWO = "2 classes: 0, 1"

ACCEPTED = [
    ("bytes [N, H, W, C]", lambda: (arrays(8, 9, 3, dtype=np.uint8), Y), {},
     f"48 + 12 images, 3 x 8 x 9 (channels were last), {TWO}; scaled to 0..1"),
    ("floats [N, H, W, C] of 12 bands", lambda: (arrays(32, 32, 12), Y), {},
     f"48 + 12 images, 12 x 32 x 32 (channels were last), {TWO}; values"),
    ("floats [N, C, H, W] of 12 bands", lambda: (arrays(12, 8, 8), Y), {}, f"48 + 12 images, 12 x 8 x 8, {TWO}"),
    ("images of two channels", lambda: (arrays(2, 8, 9), Y), {}, "images, 2 x 8 x 9"),
    ("floats [N, A, A]", lambda: (arrays(8, 8), Y), {}, "images, 1 x 8 x 8"),
    ("floats [N, A, A] with kind='signal'", lambda: (arrays(8, 8), Y), {"kind": "signal"}, "8 channels x 8 steps"),
    ("bytes [N, H, W]", lambda: (arrays(8, 9, dtype=np.uint8), Y), {}, "images, 1 x 8 x 9"),
    ("coordinates [N, 2]", lambda: (arrays(2), Y), {}, "points in the plane"),
    ("signals [N, 1, T]", lambda: (arrays(1, 50), Y), {}, "signals, 1 channel x 50 steps"),
    ("signals [N, C, T]", lambda: (arrays(6, 128), Y), {}, f"48 + 12 signals, 6 channels x 128 steps, {TWO}"),
    ("signals [N, T, C] with kind='signal'", lambda: (arrays(128, 6), Y), {"kind": "signal"},
     f"48 + 12 signals, 6 channels x 128 steps (channels were last), {TWO}"),
    ("signals [N, T, 3] with kind='signal'", lambda: (arrays(50, 3), Y), {"kind": "signal"}, "3 channels x 50 steps"),
    ("point clouds [N, P, 3] with kind='points'", lambda: (arrays(50, 3), Y), {"kind": "points"},
     f"48 + 12 point clouds, 50 x 3, {TWO}"),
    ("floats [N, H, W] with kind='image'", lambda: (arrays(20, 30), Y), {"kind": "image"}, "images, 1 x 20 x 30"),
    ("features [N, D]", lambda: (arrays(7), Y), {}, f"48 + 12 inputs of 7 numbers, {TWO}"),
    ("one-hot labels with task='classification'", lambda: (arrays(7), np.eye(2)[Y]), {"task": "classification"}, TWO),
    ("targets", lambda: (arrays(7), 2e5 + 1e3 * Y), {"task": "regression"}, "1 target from 200000 to 201000"),
    ("text labels as objects", lambda: (arrays(7), LABELS.astype(object)), {}, "2 classes: cat, dog"),
    ("a Series of categories", lambda: (arrays(7), pd.Series(LABELS, dtype="category")), {}, "2 classes: cat, dog"),
    ("a data frame with a column of labels", lambda: FRAME, {}, "48 + 12 inputs of 3 numbers, 2 classes: cat, dog"),
    ("a mapping of arrays", lambda: {"X": arrays(7), "Y": Y}, {}, f"48 + 12 inputs of 7 numbers, {TWO}"),
    ("a mapping of splits", lambda: UserDict(train=tensors(), validation=tensors(8), test=tensors(10)), {},
     f"60 + 10 images, 3 x 6 x 6, {TWO}"),
    ("a mapping of train and Valid", lambda: {"Training": tensors(), "Valid": tensors(8)}, {}, "60 + 8 images"),
    ("a Bunch of scikit-learn", load_iris, {},
     "120 + 30 inputs of 4 numbers, 3 classes: setosa, versicolor, virginica"),
    ("a mapping of train, val and test", lambda: {"train": tensors(), "val": tensors(8), "test": tensors(10)}, {},
     "val not used"),
    ("a mapping of columns", lambda: {"image": arrays(8, 8), "label": Y}, {}, "images, 1 x 8 x 8"),
    ("a list of inputs and labels", lambda: [arrays(7), Y], {}, "48 + 12 inputs of 7 numbers"),
    ("an array of arrays", lambda: (pd.Series(list(arrays(8, 8))), Y), {}, "images, 1 x 8 x 8"),
    ("a test class that training has not", lambda: ((arrays(7), Y), (arrays(7), Y + 1)), {},
     "3 classes: 0, 1, 2; not in training: 2"),
    ("bytes that are all dark", lambda: (arrays(8, 8, dtype=np.uint8) // 16, Y), {}, "to 0..1, the largest 0.059"),
    ("two pairs, as Keras gives them", lambda: ((arrays(7), Y), (arrays(7, n=5), Y[:5])), {}, "60 + 5 inputs"),
    ("two data sets, as random_split gives them", lambda: random_split(tensors(), [50, 10]), {}, "50 + 10 images"),
    ("a DataLoader", lambda: DataLoader(tensors(), batch_size=4), {}, "48 + 12 images"),
    ("a Subset of a data set with class names", lambda: Subset(Pictures(20), range(10)), {}, "cat, dog"),
    ("a ConcatDataset", lambda: ConcatDataset([Pictures(4), Pictures(6)]), {}, "8 + 2 images, 1 x 8 x 8, 2 cl"),
    ("arrays with a size", lambda: (arrays(8, 12, 3), Y), {"size": 6}, "3 x 6 x 6 (channels were last; resized)"),
]  # fmt: skip

REFUSED = [
    ("signals [N, T, C]", lambda: (arrays(128, 6), Y), r"\[60, 128, 6\] can be images .* signals of 128 steps in 6"),
    ("[N, T, 3]", lambda: (arrays(50, 3), Y), "clouds of 50 points .*kind='points'.* signals of 50 steps in 3"),
    ("floats [N, H, W], not square", lambda: (arrays(20, 30), Y), "images of 20 x 30 pixels .* signals of 30 steps"),
    ("images whose channels may be first or last", lambda: (arrays(20, 30, 12), Y), "If the channels are first"),
    ("one-hot labels", lambda: (arrays(7), np.eye(2)[Y]), "look one-hot"),
    ("numbers that may be classes or targets", lambda: (arrays(7), 1900 + np.arange(60)),
     "60 labels of 60 different numbers .* task='regression'"),
    ("integer pixels 0 and 1", lambda: ((arrays(8, 8) > 0.5).astype(int), Y), "these are 0 and 1.* Pass x > 0"),
    ("a data frame with a column of text", lambda: FRAME.assign(owner="me"), "must hold numbers; not so: owner"),
    ("a data frame with two columns of labels", lambda: FRAME.assign(target=Y), "Label and target can both be"),
    ("a data frame with a name twice", lambda: FRAME.rename(columns={"a": "b"}), "must have different names; twice: b"),
    ("parts without train", lambda: {"test": tensors()}, "must hold train beside test"),
    ("four arrays in a row", lambda: (arrays(7), arrays(7), Y, Y), r"Whole arrays are passed as \(inputs, labels\)"),
    ("16-bit pixels of 12 bits", lambda: ((arrays(8, 8) * 4095).astype(np.uint16), Y), r"largest is 4,09\d of 65,535"),
    ("a data frame without labels", lambda: FRAME[["a", "b"]], "labels in a column named label, .* it has a, b"),
    ("a mapping of something else", lambda: {"pixels": arrays(7)}, "must hold x_train, .* it holds pixels"),
    ("an array alone", lambda: arrays(8, 8), "must have labels; got an array"),
    ("a loader of a stream", lambda: DataLoader(Stream()), "no length"),
    ("sparse inputs", lambda: (torch.eye(60).to_sparse(), Y), r"must be dense; .* x.to_dense\(\)"),
    ("masked values", lambda: (np.ma.masked_less(arrays(8, 8), 0.5), Y), "must be there; .* are masked"),
    ("one number for each input", lambda: (arrays(), Y), r"got \[60\]. .* x\[:, None\]"),
    ("inputs without any number", lambda: (arrays(8, 0), Y), r"must hold numbers; got shape \[60, 8, 0\]"),
    ("targets that are all equal", lambda: (arrays(7), np.full((60, 1), 7.5)), "all targets are 7.5"),
    ("targets beyond float32", lambda: (arrays(7), 1e200 * Y[:, None]), "targets must be finite"),
    ("targets too close for float32", lambda: (arrays(7), 1.7e9 + Y[:, None]), "Subtract a constant"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "make", "options", "line"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_accepted_with_a_line_that_says_what_was_read(what, make, options, line):
    assert line in load(make(), **options).describe()


@pytest.mark.parametrize(("what", "make", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_with_what_to_do(what, make, message):
    refused(message, load, make())


FORMS = {
    "a pair": lambda: (arrays(3, 6, 6), Y), "a mapping": lambda: {"x": arrays(3, 6, 6), "y": Y},
    "a map-style data set": tensors, "a path": lambda: "a.npz",
}  # fmt: skip
OTHERS = {
    "an array": lambda: arrays(3, 6, 6), "three arrays": lambda: (arrays(3, 6, 6), Y, Y), "a number": lambda: 5,
    "a Dataset": lambda: load((arrays(3, 6, 6), Y)),
}  # fmt: skip


@pytest.mark.parametrize("source", FORMS)
@pytest.mark.parametrize("test", [*FORMS, *OTHERS])
def test_a_test_set_has_the_form_of_the_training_set(tmp_path, monkeypatch, source, test):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", x=arrays(3, 6, 6), y=Y)
    given = FORMS[source](), {**FORMS, **OTHERS}[test]()
    if source == test:
        assert len(load(given[0], test=given[1]).x_test) == 60
    else:
        refused(f"the test set must be {source}.*, as the training set is; got", load, given[0], test=given[1])


def test_columns_of_a_test_frame_are_matched_by_name():
    swapped = load(FRAME, test=FRAME[["c", "Label", "b", "a"]])
    assert torch.equal(swapped.x_test, swapped.x_train)
    refused("the columns a, b, c; it has b, a", load, FRAME, test=FRAME[["b", "Label", "a"]])


def test_moved_channels_keep_their_values():
    x = arrays(128, 6)
    assert np.array_equal(load((x, Y), test=(x, Y), kind="signal").x_test.numpy(), x.transpose(0, 2, 1))
    images = arrays(9, 9, 12)
    moved = load((images, Y), test=(images, Y)).x_test
    assert np.array_equal(moved.numpy(), images.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("train", "test"), [("Train", "Test"), ("training", "testing"), ("TRAIN", "val"), ("train", "Validation")]
)
def test_folders_with_the_usual_names_of_splits(tmp_path, train, test):
    image_folder(tmp_path / train, {"cat": 3, "dog": 4})
    image_folder(tmp_path / test, {"cat": 2, "dog": 1})
    data = load(tmp_path)
    assert data.describe().startswith("7 + 3 images, 1 x 8 x 8, 2 classes: cat, dog; scaled to 0..1")
    assert (f"{test} as test set" in data.describe()) is (test.lower() not in ("test", "testing"))


def test_a_validation_folder_beside_a_test_folder_is_named_and_not_used(tmp_path):
    for part, n in (("train", 4), ("val", 3), ("test", 2)):
        image_folder(tmp_path / part, {"cat": n, "dog": n})
    data = load(tmp_path)
    assert (len(data.x_train), len(data.x_test)) == (8, 4) and data.remark == "val not used"


def test_folders_of_images_inside_validation_beside_test_and_splits_that_are_no_classes(tmp_path):
    image_folder(tmp_path / "pets/images", {"cat": 5, "dog": 5})
    (tmp_path / "pets/annotations").mkdir()
    assert load(tmp_path / "pets").class_names == ("cat", "dog")
    image_folder(tmp_path / "a", {"Train": 3, "Test": 3})
    refused("Train must hold one sub-folder of images for each class; it holds 3 images", load, tmp_path / "a")
    image_folder(tmp_path / "b/val", {"cat": 2})
    image_folder(tmp_path / "b/test", {"cat": 2})
    refused("must hold train beside val and test", load, tmp_path / "b")
    image_folder(tmp_path / "c", {"train": 3, "car": 3, "ship": 3})  # a class may have that name
    assert load(tmp_path / "c").class_names == ("car", "ship", "train")


@pytest.mark.parametrize("header", ["file,label\n", "Filename,Class\n", "picture,animal\n", ""])
@pytest.mark.parametrize("path", ["{}.png", "{}", "./{}.png", "images\\{}.png"])
def test_a_table_of_labels(tmp_path, header, path):
    (tmp_path / "images").mkdir()
    for i in range(10):
        picture(8, 8, "L", value=10 * i).save(tmp_path / f"images/{i}.png")
    lines = [f"{path.format(i)},{'dog' if i % 2 else 'cat'}" for i in range(10)]
    (tmp_path / "labels.csv").write_text(header + "\n".join(lines))
    for place in (tmp_path, tmp_path / "images"):
        data = load(place, test_fraction=0.0)
        values = (data.x_train[:, 0, 0, 0] * 25.5).round().long()
        assert data.class_names == ("cat", "dog") and torch.equal(data.y_train, values % 2)


def test_a_table_of_numbers_is_a_regression_and_a_bad_table_is_refused(tmp_path):
    for i in range(4):
        picture(8, 8, "L", value=i).save(tmp_path / f"{i}.png")
    table = tmp_path / "labels.csv"
    table.write_text("id,target\n" + "\n".join(f"{i},{i / 2}" for i in range(4)))
    assert load(tmp_path, task="regression", test_fraction=0.0).y_train.sum() == 3
    table.write_text("id,target\n9,1")
    refused("lists 9, which is no image", load, tmp_path)
    table.write_text("a,b,c\n1,2,3")
    refused(r"must have a column of files .* its first line is a,b,c", load, tmp_path)


def test_sizes_are_said(tmp_path):
    image_folder(tmp_path, {"cat": 3, "dog": 3})
    picture(8, 20).save(tmp_path / "cat/wide.png")
    picture(16, 16).save(tmp_path / "cat/large.png")
    assert "3 x 8 x 8 (3 sizes, cropped at the centre)" in load(tmp_path).describe()
    (tmp_path / "cat/wide.png").unlink()
    assert "(2 sizes, resized)" in load(tmp_path).describe()
    (tmp_path / "cat/bad.png").write_bytes(b"no")
    skipped = load(tmp_path, skip_bad=True, test_fraction=0.0)
    assert skipped.describe().endswith("no test set; 1 file skipped")


def test_pictures_of_twelve_bits_are_refused(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.fromarray(np.full((8, 8), 4000, np.uint16)).save(tmp_path / name / "x.png")
    refused("largest is 4,000 of 65,535, so these look like pixels of 12 bits", load, tmp_path)


def test_resized_arrays_are_resized_as_pictures_are(tmp_path):
    x = arrays(12, 20, dtype=np.uint8, n=4)
    for i, name in enumerate("abab"):
        (tmp_path / name).mkdir(exist_ok=True)
        Image.fromarray(x[i]).save(tmp_path / name / f"{i}.png")
    np.savez(tmp_path / "x.npz", x=x[[0, 2, 1, 3]], y=[0, 0, 1, 1])
    of_pictures, of_arrays = (load(tmp_path / place, size=6, seed=1) for place in ("", "x.npz"))
    assert torch.equal(of_pictures.x_train, of_arrays.x_train)


def test_targets_are_standardised_and_brought_back():
    y = np.stack([2e5 + 1e4 * arrays(n=60), np.full(60, 7.0)], 1)
    data = load((arrays(7), y))
    inside = data.standardised()
    assert inside.y_train.mean(0).abs().max() < 1e-5
    assert inside.y_train.std(0, correction=0)[0] == pytest.approx(1)
    assert torch.allclose(inside.to_units(inside.y_test), data.y_test, rtol=1e-6)
    assert inside.standardised() is inside and inside.describe() == data.describe()
    # A density of y is that of z divided by dy/dz.
    z, (mean, scale) = inside.y_train[:, :1].double(), (inside.target_mean[0], inside.target_scale[0])
    of_z = torch.distributions.Normal(0.0, 1.0).log_prob(z)
    of_y = torch.distributions.Normal(mean, scale).log_prob(data.y_train[:, :1].double())
    assert torch.allclose(of_z - inside.log_scale, of_y, atol=1e-5)
    assert load((arrays(7), Y)).standardised().target_scale == ()


def test_inputs_without_labels(tmp_path):
    for i in range(3):
        picture(8, 8, "L").save(tmp_path / f"{i}.png")
    found = load_inputs(tmp_path)
    assert found.kind == "image" and found.x.shape == (3, 1, 8, 8)
    assert load_inputs(arrays(7)).kind == "features" and load_inputs(torch.rand(4, 6, 60)).kind == "signal"
    np.savez(tmp_path / "x.npz", images=arrays(8, 9, 3, dtype=np.uint8))
    assert load_inputs(tmp_path / "x.npz").x.shape == (60, 3, 8, 9)
    assert load_inputs((arrays(7), Y)).task == "classification"
