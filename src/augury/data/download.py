"""Bytes from elsewhere: over http, or through the package clients npm and apt. Verified by sha256 before use."""

import hashlib
import http.client
import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from augury.core.errors import AuguryError
from augury.data.progress import Progress, silent

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
