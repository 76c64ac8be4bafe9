"""A folder of images in any format that Pillow reads, sorted into sub-folders by class or listed in a table.

    pets/cat/1.jpg  pets/dog/1.jpg  ...                       split by seed, the same share of every class
    pets/train/cat/1.jpg  ...  pets/test/dog/9.jpg  ...       train, training; val, valid, validation; test, testing
    pets/images/cat/1.jpg  ...                                the folder of images inside
    pets/labels.csv  pets/images/1.jpg  ...                   file and label in each line

Images of mixed sizes are brought to one: `size` if given, else the most common size of the training images, reduced to
`side`; cut at the centre to its proportions, then resampled bilinearly over the full footprint of each new pixel, so
that nothing aliases. One image is decoded at a time. If any training image has colour, all get three channels. Bytes
are divided by 255, 16-bit values (and 32-bit integers, Pillow's older name for them) by 65,535. Transparent pixels are
blended with black, as outside a warped image. The orientation tag is applied; the first frame of an animation is used.
"""

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from augury.core.errors import InputError
from augury.core.files import Progress, silent
from augury.data.arrays import LABEL_COLUMNS
from augury.data.dataset import Dataset
from augury.data.layout import check_bits, scaled_to
from augury.data.split import named_splits, train_and_test
from augury.data.targets import Options, Part, assemble

LARGEST = 8 * 2**30
"""Bytes of pixels above which a folder is refused unless resized: it is held in memory."""

SMALLEST_SIDE = 16
"""Pixels to which the shorter side of an elongated image is reduced at most."""

FILE_COLUMNS = ("file", "filename", "file_name", "image", "path", "id", "name")
"""Names of the column of a table that holds the files, in any case."""


def read_folder(folder: Path, options: Options, test: Path | None = None) -> Dataset:
    """Read a folder of images."""
    train, held_out, note = find_parts(folder)
    test, note = (held_out, note) if test is None else (test, "")
    opener = Opener(options.skip_bad)
    files = find_images(train, opener)
    headers = [file.header for file in files]
    colour, size = any(h.colour for h in headers), options.size or common_size(headers, options.side)
    part, part_test = _typed(read_images(files, colour, size, opener, options.progress), train), None
    check_wide(headers, part.x)
    if test is not None:
        opener = Opener(options.skip_bad)
        part_test = read_images(find_images(test, opener), colour, size, opener, options.progress)
        part_test = _typed(part_test, test)
    left = (
        0 if find_table(train) is None else sum(1 for _ in image_files(train)) - len({f.path for f in files})
    )
    note = f"{left} image{'s' * (left > 1)} not in labels.csv" if left > 0 else note
    return assemble(part, part_test, options, kind="image", source=f"folder {folder}", remark=note)


def read_unlabelled(folder: Path, options: Options) -> Part:
    """Read every image below a folder, in any sub-folder."""
    opener = Opener(options.skip_bad)
    files = _found(folder, "", opener)
    if not files:
        raise InputError(
            f"folder {folder} must hold images of a format that Pillow reads (png, jpg, tif, bmp, webp, ...); "
            f"it holds none."
        )
    headers = [file.header for file in files]
    colour, size = any(h.colour for h in headers), options.size or common_size(headers, options.side)
    part = read_images(files, colour, size, opener, options.progress)
    check_wide(headers, part.x)
    return part


def _typed(part: Part, folder: Path) -> Part:
    """Read the labels of a table as numbers if all of them are."""
    if find_table(folder) is None:
        return part
    for dtype in (np.int64, np.float64):
        try:
            return replace(part, y=part.y.astype(dtype))
        except ValueError:
            continue
    return part


def subfolders(folder: Path) -> list[Path]:
    """Return the visible folders in a folder, in order."""
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def find_parts(folder: Path) -> tuple[Path, Path | None, str]:
    """Return the folders of training and test images, and a remark."""
    folders = {path.name: path for path in subfolders(folder)}
    inner = folders.get("images") or (next(iter(folders.values())) if len(folders) == 1 else None)
    if inner and subfolders(inner) and all(inner in path.parents for path in image_files(folder)):
        return find_parts(inner)  # beside it there are notes or annotations at most
    splits = named_splits(folders)
    if not splits and all(
        map(subfolders, folders.values())
    ):  # training_set, seg_test: not classes if all are such
        words = {
            word: path for name, path in folders.items() for word in named_splits(name.split("_")).values()
        }
        splits = named_splits(words)
        folders = words if "train" in splits and len(splits) == len(folders) else folders
    # A class may be called "train"; then it holds images, not classes.
    only_splits = bool(splits) and len(splits) == len(folders)
    if not only_splits and not ("train" in splits and subfolders(folders[splits["train"]])):
        return folder, None, ""
    train, test, said = train_and_test(folders, f"folder {folder}")
    return folders[train], None if test is None else folders[test], said


@dataclass(frozen=True)
class Header:
    """What a picture's header says, before its pixels are read."""

    height: int
    width: int
    """Pixels, with the picture upright."""
    colour: bool
    """Whether it has more than grey."""
    wide: bool = False
    """Whether its pixels have 16 bits."""


@dataclass(frozen=True)
class Found:
    """An image file, its class, and what its header says."""

    path: Path
    label: str
    """Name of its class folder, or its label in a table."""
    header: Header


T = TypeVar("T")


@dataclass
class Opener:
    """Opens image files; skips or refuses those that cannot be read."""

    skip_bad: bool = False
    """Skip and note them, instead of raising."""
    skipped: list[str] = field(default_factory=list)

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
                f"cannot read image {path}: {error}. Repair or remove it, or skip such files with "
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
    note = sizes_note([file.header for file in files], size)
    y = np.array(labels, dtype=np.str_)
    x = x[: len(labels)]
    return Part(x, y, tuple(opener.skipped), note, scaled_to(float(x.max()) if len(x) else 1.0))


def sizes_note(headers: Iterable[Header], size: tuple[int, int] | None) -> str:
    """Say how images of several sizes were brought to one."""
    sizes = {(header.height, header.width) for header in headers}
    if sizes <= {size} or size is None:
        return ""
    (h, w), off = max(sizes), max(abs(w / h * size[0] / size[1] - 1) for h, w in sizes)
    within_a_pixel = off <= 1 / min(size)
    done = "resized" if within_a_pixel else "cropped at the centre"
    return f"{done} from {h} x {w}" if len(sizes) == 1 else f"{len(sizes)} sizes, {done}"


def check_wide(headers: Iterable[Header], x: Tensor) -> None:
    """Raise if all pictures have 16 bits of which they use 12 at most."""
    if len(x) and all(header.wide for header in headers):
        check_bits(round(65535 * float(x.max())))


def image_files(folder: Path) -> Iterator[Path]:
    """Give the files below a folder whose name ends like an image's, in order; hidden ones are left out."""
    endings = {e for e, name in Image.registered_extensions().items() if name in Image.OPEN}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in endings and not path.name.startswith(".") and path.is_file():
            yield path


def _found(folder: Path, label: str, opener: Opener) -> list[Found]:
    """Return all readable images below a folder, with one label."""
    headers = [(path, opener.read(path, read_header)) for path in image_files(folder)]
    return [Found(path, label, header) for path, header in headers if header is not None]


def find_images(folder: Path, opener: Opener) -> list[Found]:
    """List the images of every class, or of a table, reading headers only."""
    table = find_table(folder)
    if table is not None:
        return _listed(table, folder, opener)
    found = []
    for directory in subfolders(folder):
        readable = _found(directory, directory.name, opener)
        if not readable:
            raise InputError(
                f"class folder {directory} must hold at least one readable image; it holds none. Remove it, or "
                f"put images of a format that Pillow reads (png, jpg, tif, bmp, webp, ...) into it."
            )
        found += readable
    if not found:
        n = sum(1 for _ in image_files(folder))
        held = f"{n} images and no sub-folder" if n else "nothing"
        raise InputError(
            f"folder {folder} must hold one sub-folder of images for each class; it holds {held}. Sort images into "
            f"sub-folders by class, or list them in labels.csv (file and label in each line)."
        )
    return found


def find_table(folder: Path) -> Path | None:
    """Return the table that lists the images of a folder: labels.csv in it, or beside it if it has no sub-folders."""
    places = [folder] if subfolders(folder) else [folder, folder.parent]
    return next((place / "labels.csv" for place in places if (place / "labels.csv").is_file()), None)


def _listed(table: Path, folder: Path, opener: Opener) -> list[Found]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as lines:
            comma = max(",;\t", key=lines.readline().count)
            lines.seek(0)
            rows = [row for row in csv.reader(lines, delimiter=comma) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{table} must be a table of text (CSV, UTF-8); it cannot be read: {error}."
        ) from error
    files: dict[str, Path] = {}
    for path in image_files(folder):
        for key in (path.stem, path.name, path.relative_to(folder).as_posix(), f"{folder.name}/{path.name}"):
            files[key] = path
    titles = [title.strip().lower() for title in rows[0]] if rows else []
    columns = [next((titles.index(n) for n in c if n in titles), -1) for c in (FILE_COLUMNS, LABEL_COLUMNS)]
    columns = [0, 1] if len(titles) == 2 and -1 in columns else columns
    if -1 in columns:
        raise InputError(
            f"{table} must have a column of files ({', '.join(FILE_COLUMNS[:3])}, ...) and one of labels "
            f"({', '.join(LABEL_COLUMNS[:3])}, ...); its first line is {','.join(rows[0]) if rows else 'missing'}."
        )
    found = []
    for row in rows if rows[0][columns[0]].strip() in files else rows[1:]:
        if len(row) <= max(columns):
            raise InputError(
                f"every line of {table} must hold a file and a label; one is {','.join(row)!r:.60}."
            )
        name, label = (row[k].strip() for k in columns)
        if name not in files and not opener.skip_bad:
            raise InputError(
                f"{table} lists {name}, which is no image in {folder}. Remove the line (or --skip-bad)."
            )
        path = files.get(name, folder / name)
        header = opener.read(path, read_header)
        found += [] if header is None else [Found(path, label, header)]
    if not found:
        raise InputError(f"{table} must list at least one readable image; it lists none.")
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
    return Header(height, width, picture.mode not in GREY_MODES, picture.mode in WIDE_MODES)


def common_size(headers: list[Header], side: int | None = None) -> tuple[int, int]:
    """Return the most common size (the smallest of these where several are), its longer side reduced to `side`.

    If it is that of less than a quarter of the images: a square as long as the median of their shorter sides.
    """
    counts = Counter((h.height, h.width) for h in headers)
    most = max(counts.values())
    height, width = min(size for size, count in counts.items() if count == most)
    if 4 * most < len(headers):
        height = width = sorted(min(h.height, h.width) for h in headers)[len(headers) // 2]
    factor = min(1.0, (side or math.inf) / max(height, width))
    least = min(SMALLEST_SIDE, height, width)
    return max(least, round(factor * height)), max(least, round(factor * width))


def to_pixels(picture: Image.Image, colour: bool, size: tuple[int, int] | None = None) -> np.ndarray:
    if size is not None:
        picture.draft(None, (4 * max(size), 4 * max(size)))  # a JPEG is decoded at a fraction of its size
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
    return np.asarray(fitted).clip(plane.min(), plane.max())


def resized(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Bring images [N, C, H, W] to a size as those of a folder are."""
    if tuple(x.shape[-2:]) == size:
        return x
    planes = [_fit(plane, size) for plane in x.flatten(0, 1).numpy()]
    return torch.from_numpy(np.stack(planes)).view(*x.shape[:2], *size)
