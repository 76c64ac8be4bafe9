"""Finding and opening image files, and what to do about those that cannot be read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from PIL import Image

from augury.core.errors import InputError
from augury.data.pictures import Header, read_header

T = TypeVar("T")


@dataclass(frozen=True)
class Found:
    """An image file, its class, and what its header says."""

    path: Path
    """The file."""
    label: str
    """Name of its class folder."""
    header: Header
    """Size and colour."""


@dataclass
class Opener:
    """Opens image files, and knows what to do about those that cannot be read."""

    skip_bad: bool = False
    """Pass over them and note them, instead of raising."""
    skipped: list[str] = field(default_factory=list)
    """Those passed over."""

    def read(self, path: Path, action: Callable[[Image.Image], T]) -> T | None:
        """Open a file and do something with the picture."""
        try:
            with Image.open(path) as picture:
                return action(picture)
        except Exception as error:
            if self.skip_bad:
                self.skipped.append(str(path))
                return None
            raise InputError(
                f"cannot read image {path}: {error}. Repair or remove it, or pass over such files with "
                f"skip_bad=True (--skip-bad)."
            ) from error


def image_files(folder: Path) -> Iterator[Path]:
    """Give the files below a folder whose name ends like an image's, in order; hidden ones are left out."""
    endings = {e for e, name in Image.registered_extensions().items() if name in Image.OPEN}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in endings and not path.name.startswith(".") and path.is_file():
            yield path


def find_images(folder: Path, opener: Opener) -> list[Found]:
    """List the images of every class, reading headers only."""
    classes = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if not classes:
        n = sum(1 for _ in image_files(folder))
        held = f"{n} images and no sub-folder. Sort them into sub-folders by class." if n else "nothing."
        raise InputError(
            f"folder {folder} must hold one sub-folder of images for each class; it holds {held}"
        )
    found = []
    for directory in classes:
        headers = [(path, opener.read(path, read_header)) for path in image_files(directory)]
        readable = [Found(path, directory.name, header) for path, header in headers if header is not None]
        if not readable:
            raise InputError(
                f"class folder {directory} must hold at least one readable image; it holds none. Remove it, or "
                f"put images of a format that Pillow reads (png, jpg, tif, bmp, webp, ...) into it."
            )
        found += readable
    return found
