"""Every kind of folder and file: accepted with the line that says what was read, or refused with what to do.

`ACCEPTED` and `REFUSED` are in the table of the documentation; `make` writes to a folder and returns what to read.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from augury.core.errors import InputError
from augury.data.load import load
from augury.data.unlabelled import load_inputs
from data_doubles import image_folder, picture
from refusal import refused

TWO = "2 classes: cat, dog"
Y = np.arange(20) % 2


def classes(folder: Path, n: int = 5, make: Callable[[], Image.Image] | None = None) -> Path:
    image_folder(folder, {"cat": n, "dog": n})
    for path in folder.rglob("*.png") if make else ():
        make().save(path)
    return folder


def splits(folder: Path, **counts: int) -> Path:
    for part, n in counts.items():
        classes(folder / part, n)
    return folder


def loose(folder: Path, n: int = 6, table: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(n):
        picture(8, 8, "L", value=i).save(folder / f"{i}.png")
    if table:
        lines = [f"{i}.png,{'dog' if i % 2 else 'cat'}" for i in range(n)]
        (folder / table).write_text("file,label\n" + "\n".join(lines))
    return folder


def listed(folder: Path, comma: str, n: int) -> Path:
    lines = [f"{i}.png{comma}{'dog' if i % 2 else 'cat'}" for i in range(n)]
    (loose(folder) / "labels.csv").write_text(f"file{comma}label\n" + "\n".join(lines))
    return folder


def inside(folder: Path, below: str) -> Path:
    classes(folder / below)
    return folder


def with_another(folder: Path, image: Image.Image) -> Path:
    image.save(classes(folder) / "cat" / "another.png")
    return folder


def without(folder: Path, path: str) -> Path:
    (classes(folder) / path).write_bytes(b"no")
    return folder


def npz(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"


def pixels(n: int = 20, dtype: type = np.uint8, highest: int = 255) -> np.ndarray:
    return np.random.default_rng(0).integers(0, highest + 1, (n, 8, 8)).astype(dtype)


ACCEPTED = [
    ("a folder with one sub-folder per class", classes, {}, f"8 + 2 images, 1 x 8 x 8, {TWO}; scaled to 0..1"),
    ("the same below images/", lambda p: inside(p, "images"), {}, f"8 + 2 images, 1 x 8 x 8, {TWO}"),
    ("train/ and test/", lambda p: splits(p, train=4, test=3), {}, f"8 + 6 images, 1 x 8 x 8, {TWO}"),
    ("Training/ and Testing/, in any case", lambda p: splits(p, Training=4, Testing=3), {}, "8 + 6 images"),
    ("train/ and val/", lambda p: splits(p, train=4, val=3), {}, "8 + 6 images"),
    ("train/, val/ and test/", lambda p: splits(p, train=4, val=2, test=3), {}, "8 + 6 images, 1 x 8 x 8, 2 classes: "
     "cat, dog; scaled to 0..1; val not used"),
    ("train/ and dev/", lambda p: splits(p, train=4, dev=3), {}, "dev as test set"),
    ("train/ and other folders", lambda p: splits(p, train=4, more=3), {}, "more not used"),
    ("training_set/ and test_set/, if they hold classes", lambda p: splits(p, training_set=4, test_set=3), {},
     f"8 + 6 images, 1 x 8 x 8, {TWO}"),
    ("a labels.csv that lists some images, with semicolons", lambda p: listed(p, ";", 4), {},
     "2 images not in labels.csv"),
    ("images and a labels.csv beside them",
     lambda p: loose(p, table="labels.csv"), {}, f"4 + 2 images, 1 x 8 x 8, {TWO}"),
    ("images of several sizes and shapes", lambda p: with_another(p, picture(8, 20, "L")), {}, "2 sizes, cropped"),
    ("an image that cannot be read, with skip_bad",
     lambda p: without(p, "cat/bad.png"), {"skip_bad": True}, "1 file skipped"),
    (".npz with x_train, y_train, x_test, y_test",
     lambda p: npz(p, x_train=pixels(), y_train=Y, x_test=pixels(6), y_test=Y[:6]), {}, "20 + 6 images, 1 x 8 x 8"),
    (".npz with x, y", lambda p: npz(p, x=pixels(), y=Y), {}, "16 + 4 images, 1 x 8 x 8"),
    (".npz as MedMNIST writes it",
     lambda p: npz(p, train_images=pixels(), train_labels=Y[:, None], test_images=pixels(6), test_labels=Y[:6, None]),
     {}, "20 + 6 images, 1 x 8 x 8"),
    (".npz with x_val, y_val instead", lambda p: npz(p, x_train=pixels(), y_train=Y, x_val=pixels(6), y_val=Y[:6]), {},
     "20 + 6 images, 1 x 8 x 8, 2 classes: 0, 1; scaled to 0..1; x_val as test set"),
    (".npz with both", lambda p: npz(p, x_train=pixels(), y_train=Y, x_val=pixels(6), y_val=Y[:6], x_test=pixels(5),
                                     y_test=Y[:5]), {}, "20 + 5 images, 1 x 8 x 8, 2 classes: 0, 1; scaled to 0..1; "
     "x_val and y_val not used"),
    (".npz with a size", lambda p: npz(p, x=pixels(), y=Y), {"size": 6}, "1 x 6 x 6 (resized)"),
]  # fmt: skip

UNLABELLED = [
    (
        "a folder of images (audit, amortize)",
        loose,
        {},
        "6 images, 1 x 8 x 8; scaled to 0..1, the largest 0.02; no labels",
    ),
    (".npz with images alone (audit, amortize)", lambda p: npz(p, images=pixels()), {}, "20 images, 1 x 8 x 8; scaled"),
]

REFUSED = [
    ("a folder of images without labels (learn)", loose, "one sub-folder of images for each class"),
    ("a folder of Train and Test without classes",
     lambda p: image_folder(p, {"Train": 3, "Test": 3}), "it holds 3 images"),
    ("val/ and test/ without train/", lambda p: splits(p, val=2, test=2), "must hold train"),
    ("an image that cannot be read", lambda p: without(p, "cat/bad.png"), "bad.png"),
    ("16-bit images of 12 bits",
     lambda p: classes(p, make=lambda: Image.fromarray(np.full((8, 8), 4000, np.uint16))), "4,000 of 65,535"),
    ("images of 0 and 1, such as masks",
     lambda p: classes(p, make=lambda: Image.fromarray(np.eye(8, dtype=np.uint8))), "these are 0 and 1"),
    (".npz of pickled objects",
     lambda p: npz(p, x=np.array([{}, {}], dtype=object), y=Y[:2]), "never loaded"),
    (".npz with other names", lambda p: npz(p, pixels=pixels(), kind=Y), "must hold x_train"),
    ("the folder of a run", lambda p: npz(p, x=pixels()).rename(p / "metrics.jsonl").parent, "is the folder of a run"),
    ("any other file", lambda p: loose(p, 1) / "0.png", "must be an .npz"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "make", "options", "line"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_accepted_with_a_line_that_says_what_was_read(tmp_path, what, make, options, line):
    assert line in load(make(tmp_path), **options).describe()


@pytest.mark.parametrize(("what", "make", "options", "line"), UNLABELLED, ids=[row[0] for row in UNLABELLED])
def test_accepted_without_labels(tmp_path, what, make, options, line):
    assert line in load_inputs(make(tmp_path), **options).describe()


@pytest.mark.parametrize(("what", "make", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_with_what_to_do(tmp_path, what, make, message):
    refused(message, load, make(tmp_path), error=InputError)
