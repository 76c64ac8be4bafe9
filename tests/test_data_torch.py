"""Map-style data sets of every sort pass through: torch's, torchvision's, Hugging Face's."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset, TensorDataset

from augury.data.load import load
from data_doubles import picture
from refusal import refused


class Pictures(TorchDataset):
    """Like torchvision's: pairs with a Pillow picture, and `classes`."""

    classes = ("cat", "dog")

    def __init__(self, n, sizes=((8, 8),), mode="L"):
        self.n, self.sizes, self.mode = n, sizes, mode

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return picture(*self.sizes[i % len(self.sizes)], self.mode, value=i), i % 2


class Rows:
    """Like Hugging Face's: not torch's class, dictionaries, names in `features`."""

    def __init__(self, n, image="image", label="label"):
        self.n, self.image, self.label = n, image, label
        self.features = {label: SimpleNamespace(names=["no", "yes", "maybe"])}

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {self.image: picture(6, 6, "RGB", value=i), "id": i, self.label: i % 3}


def test_tensor_dataset():
    x, y = torch.rand(10, 3, 5, 5), torch.arange(10) % 2
    data = load(TensorDataset(x, y), test=TensorDataset(x + 1, y))
    assert torch.equal(data.x_train, x) and torch.equal(data.x_test, x + 1) and torch.equal(data.y_test, y)
    assert "TensorDataset" in data.source


def test_pictures_their_class_names_and_mixed_sizes():
    data = load(Pictures(10), test=Pictures(4))
    assert data.class_names == ("cat", "dog") and data.input_shape == (1, 8, 8)
    assert (data.x_train[:, 0, 0, 0] * 255).round().tolist() == list(range(10))
    assert data.y_test.tolist() == [0, 1, 0, 1]
    data = load(Pictures(9, sizes=((8, 8), (8, 8), (12, 30)), mode="RGB"), test_fraction=0.0)
    assert data.input_shape == (3, 8, 8)
    assert load(Pictures(4), size=5).input_shape == (1, 5, 5)


@pytest.mark.parametrize(("image", "label"), [("image", "label"), ("img", "fine_label"), ("pixel_values", "labels")])
def test_dictionaries(image, label):
    data = load(Rows(6, image, label), test=Rows(3, image, label))
    assert data.class_names == ("no", "yes", "maybe") and data.input_shape == (3, 6, 6)
    assert data.y_train.tolist() == [0, 1, 2, 0, 1, 2]


def test_a_list_of_pairs_progress_and_tensor_targets():
    seen = []
    pairs = [(np.full((2,), float(i)), i % 2) for i in range(6)]
    data = load(pairs, test_fraction=0.0, progress=lambda what, done, total: seen.append((done, total)))
    assert data.kind == "coordinates" and seen == [(i + 1, 6) for i in range(6)]
    pairs = [(torch.zeros(4), torch.tensor([0.5, float(i)])) for i in range(5)]
    data = load(pairs, test_fraction=0.0)
    assert data.task == "regression" and data.y_train.shape == (5, 2)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([(np.zeros(3), 0), (np.zeros(4), 1)], r"example 0 has \[3\], example 1 has \[4\]"),
        ([{"image": np.zeros(3), "species": 0}], "label under one of label"),
        ([{"photo": np.zeros(3), "label": 0}], "it has photo, label"),
        ([np.zeros(3)], "example 0 is a ndarray"),
        ([], "empty"),
        (type("Stream", (IterableDataset,), {"__iter__": lambda self: iter([])})(), "no length"),
        (42, "got int"),
    ],
)
def test_what_does_not_fit_is_named(source, message):
    refused(message, load, source)
