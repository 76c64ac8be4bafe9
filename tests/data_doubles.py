"""Stand-ins for the outside world: image folders, idx files, a web server, package clients."""

import contextlib
import gzip
import hashlib
import io
import stat
import struct
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from PIL import Image


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def picture(height: int, width: int, mode: str = "RGB", value: int | None = None) -> Image.Image:
    """A horizontal ramp, or one value everywhere."""
    ramp = np.tile(np.linspace(0, 255, width).astype(np.uint8), (height, 1))
    if value is not None:
        ramp[:] = value
    return Image.fromarray(ramp).convert(mode)


def image_folder(root: Path, counts: dict[str, int], size: tuple[int, int] = (8, 8), mode: str = "L") -> Path:
    """A folder of PNGs; the value of every pixel of an image is 10 times its number in the class."""
    for name, count in counts.items():
        (root / name).mkdir(parents=True)
        for i in range(count):
            picture(*size, mode, value=10 * i).save(root / name / f"{i:03d}.png")
    return root


def idx_bytes(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def four_arrays(n: int = 20, n_test: int = 10, shape: tuple[int, ...] = (6, 6)) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "x_train": rng.integers(0, 256, (n, *shape), dtype=np.uint8),
        "y_train": np.arange(n, dtype=np.uint8) % 10,
        "x_test": rng.integers(0, 256, (n_test, *shape), dtype=np.uint8),
        "y_test": np.arange(n_test, dtype=np.uint8) % 10,
    }


def content_sha256(arrays: dict[str, np.ndarray]) -> str:
    return sha256(b"".join(arrays[key].tobytes() for key in ("x_train", "y_train", "x_test", "y_test")))


def idx_files(arrays: dict[str, np.ndarray], zipped: bool) -> dict[str, bytes]:
    stems = {
        "x_train": "train-images-idx3-ubyte",
        "y_train": "train-labels-idx1-ubyte",
        "x_test": "t10k-images-idx3-ubyte",
        "y_test": "t10k-labels-idx1-ubyte",
    }
    raw = {stems[key]: idx_bytes(array) for key, array in arrays.items()}
    return {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in raw.items()} if zipped else raw


def tar_gz(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def served(folder: Path):
    """Serve a folder on the loopback, and give its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def fake_client(folder: Path, name: str, script: str) -> None:
    """Put a program of this name into a folder that stands first on the PATH."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\nset -e\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
