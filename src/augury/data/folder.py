"""A folder of images with one sub-folder per class, in any format that Pillow reads.

    pets/cat/1.jpg  pets/cat/2.png  pets/dog/1.jpg  ...       split by seed, the same share of every class
    pets/train/cat/1.jpg  ...  pets/test/dog/9.jpg  ...       or with a test set of its own

Images of mixed sizes are brought to one: `size` if given, else the most common size of the training images; cut at the
centre to its proportions, then resampled (see `pictures`). If any training image has colour, all get three channels.

Finding and opening image files, and what to do about those that cannot be read.

One picture, of any format and mode that Pillow reads, as float32 [C, H, W] in [0, 1].

- Bytes are divided by 255, 16-bit values (and 32-bit integers, Pillow's older name for them) by 65,535.
- Transparent pixels are laid over black, which is also what lies outside a warped image. Palettes become colours.
- A camera's orientation tag is obeyed. Of an animation the first frame is taken.
- Resizing keeps the proportions: the picture is cut at its centre to the proportions asked for, then resampled
  bilinearly over the full footprint of each new pixel, so that nothing aliases.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from PIL import Image, ImageOps

from augury.core.errors import InputError
from augury.core.files import Progress, silent
from augury.data.assemble import Options, Part, assemble
from augury.data.dataset import Dataset

LARGEST = 8 * 2**30
"""Bytes of pixels above which a folder is refused unless resized: it is held in memory."""


def read_folder(
    folder: Path,
    options: Options,
    *,
    test: Path | None = None,
    size: tuple[int, int] | None = None,
    skip_bad: bool = False,
    progress: Progress = silent,
) -> Dataset:
    """Read a folder of images."""
    inner, inner_test = folder / "train", folder / "test"
    if test is None and inner.is_dir() and inner_test.is_dir():
        test = inner_test
    opener = Opener(skip_bad)
    files = find_images(inner if inner.is_dir() else folder, opener)
    colour = any(f.header.colour for f in files)
    size = size or common_size(f.header for f in files)
    part = read_images(files, colour, size, opener, progress)
    part_test = None
    if test is not None:
        opener = Opener(skip_bad)
        part_test = read_images(find_images(test, opener), colour, size, opener, progress)
    return assemble(part, part_test, options, kind="image", source=f"folder {folder}")


@dataclass(frozen=True)
class Header:
    """What a picture's header says, before its pixels are read."""

    height: int
    """Pixels, as it stands upright."""
    width: int
    """Pixels, as it stands upright."""
    colour: bool
    """Whether it has more than grey."""


@dataclass(frozen=True)
class Found:
    """An image file, its class, and what its header says."""

    path: Path
    """The file."""
    label: str
    """Name of its class folder."""
    header: Header
    """Size and colour."""


T = TypeVar("T")


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


def read_images(
    files: list[Found], colour: bool, size: tuple[int, int], opener: Opener, progress: Progress = silent
) -> Part:
    """Read the pixels of image files."""
    shape = (len(files), 3 if colour else 1, *size)
    needed = 4 * int(np.prod(shape, dtype=np.int64))
    if needed > LARGEST:
        raise InputError(
            f"{len(files)} images of {size[0]} x {size[1]} would need {needed / 2**30:.0f} GiB of memory; "
            f"at most {LARGEST / 2**30:.0f} are taken. Give a smaller size (size=64, --size 64)."
        )
    x = torch.empty(shape)
    labels: list[str] = []
    for i, file in enumerate(files):
        pixels = opener.read(file.path, lambda picture: to_pixels(picture, colour, size))
        if pixels is not None:
            x[len(labels)] = torch.from_numpy(pixels)
            labels.append(file.label)
        progress("reading images", i + 1, len(files))
    return Part(x[: len(labels)], np.array(labels, dtype=np.str_), tuple(opener.skipped))


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


GREY_MODES = ("1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")
"""Pillow's modes without colour."""

WIDE_MODES = ("I", "I;16", "I;16B", "I;16L", "I;16N")
_ORIENTATION = 0x0112
_QUARTER_TURNS = (5, 6, 7, 8)


def read_header(picture: Image.Image) -> Header:
    """Return the size and the colour of a picture without reading its pixels."""
    width, height = picture.size
    if picture.getexif().get(_ORIENTATION) in _QUARTER_TURNS:
        width, height = height, width
    return Header(height, width, picture.mode not in GREY_MODES)


def common_size(headers: Iterable[Header]) -> tuple[int, int]:
    """Return the most common size, the smallest of these where several are."""
    counts = Counter((h.height, h.width) for h in headers)
    most = max(counts.values())
    return min(size for size, count in counts.items() if count == most)


def to_pixels(picture: Image.Image, colour: bool, size: tuple[int, int] | None = None) -> np.ndarray:
    """Return a picture's pixels."""
    upright = ImageOps.exif_transpose(picture)
    planes = _planes(upright, colour)
    if size is not None and size != planes.shape[1:]:
        planes = np.stack([_fit(plane, size) for plane in planes])
    return planes


def _planes(picture: Image.Image, colour: bool) -> np.ndarray:
    if picture.mode in WIDE_MODES or picture.mode == "F":
        grey = np.asarray(picture).astype(np.float32)
        if picture.mode in WIDE_MODES:
            grey /= 65535
        if not (grey.min() >= 0 and grey.max() <= 1):  # NaN too
            raise ValueError(f"pixels of mode {picture.mode} must be finite and lie in [0, 1] after scaling")
        return np.repeat(grey[None], 3 if colour else 1, axis=0)
    if picture.mode in ("P", "PA", "LA", "La", "RGBa") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
    if picture.mode == "RGBA":
        black = Image.new("RGBA", picture.size, (0, 0, 0, 255))
        picture = Image.alpha_composite(black, picture)
    values = np.asarray(picture.convert("RGB" if colour else "L"), dtype=np.float32) / 255
    return values.transpose(2, 0, 1) if colour else values[None]


def _fit(plane: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    picture = Image.fromarray(np.ascontiguousarray(plane))
    fitted = ImageOps.fit(picture, (size[1], size[0]), Image.Resampling.BILINEAR, centering=(0.5, 0.5))
    return np.asarray(fitted).clip(0, 1)
