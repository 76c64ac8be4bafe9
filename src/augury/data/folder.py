"""A folder of images in any format that Pillow reads, sorted into sub-folders by class or listed in a table.

    pets/cat/1.jpg  pets/dog/1.jpg  ...                       split by seed, the same share of every class
    pets/train/cat/1.jpg  ...  pets/test/dog/9.jpg  ...       train, training; val, valid, validation; test, testing
    pets/images/cat/1.jpg  ...                                the folder of images inside
    pets/labels.csv  pets/images/1.jpg  ...                   file and label in each line

Images of mixed sizes are brought to one: `size` if given, else the most common size of the training images, reduced to
`side`. If any training image has colour, all get three channels. Too many images for memory are decoded once into a
file in the cache, as bytes if they are: a resized pixel is then rounded to 1/255.
"""

import csv
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from posixpath import normpath
from typing import TypeVar

import numpy as np
import torch
from PIL import Image

from augury.core.errors import InputError
from augury.core.files import Progress, silent
from augury.data.arrays import LABEL_COLUMNS, open_arrays
from augury.data.dataset import Dataset
from augury.data.layout import check_bits, scaled_to, to_inputs
from augury.data.pictures import (
    Header,
    check_wide,
    common_size,
    pixel_type,
    read_header,
    sizes_note,
    to_pixels,
    to_type,
)
from augury.data.rows import is_large, taken
from augury.data.split import named_splits, train_and_test
from augury.data.stored import keep, missing, place_of
from augury.data.targets import Options, Part, assemble

BLOCK = 256  # images that are decoded ahead

FILE_COLUMNS = ("file", "filename", "file_name", "image", "path", "id", "name")
"""Names of the column of a table that holds the files, in any case."""


Form = tuple[bool, tuple[int, int]]  # whether images have colour, and their size


def read_folder(folder: Path, options: Options, test: Path | None = None) -> Dataset:
    """Read a folder of images."""
    train, held_out, note = find_parts(folder)
    test, note = (held_out, note) if test is None else (test, "")
    part, form, left = _read(train, options, find_images)
    part_test = None if test is None else _typed(_read(test, options, find_images, form)[0], test)
    note = f"{left} image{'s' * (left > 1)} not in labels.csv" if left > 0 else note
    return assemble(_typed(part, train), part_test, options, source=f"folder {folder}", remark=note)


def read_unlabelled(folder: Path, options: Options) -> Part:
    """Read every image below a folder, in any sub-folder."""
    return _read(folder, options, _all_images)[0]


def _read(
    folder: Path, options: Options, find: "Callable[[Path, Opener], list[Found]]", form: Form | None = None
) -> tuple[Part, Form, int]:
    """Read images in one form, given or that of most of them; return how many are not in the table, too.

    Many go to a file in the cache, or are there already.
    """
    images, table = list(image_files(folder.absolute())), find_table(folder)
    place = place_of(
        [*images, *filter(None, [table])], find.__name__, options.size, options.side, options.skip_bad, form
    )
    if not place.exists():
        opener = Opener(options.skip_bad)
        found = find(folder, opener)
        headers = [file.header for file in found]
        wanted = form or (any(h.colour for h in headers), options.size or common_size(headers, options.side))
        shape = (len(found), 3 if wanted[0] else 1, *wanted[1])
        if not is_large(shape):
            part = read_images(found, *wanted, opener, options.progress)
            if form is None:
                check_wide(headers, part.x)
            return part, wanted, len(images) - len({file.path for file in found}) if table else 0
        with missing(place) as needed:
            if needed:
                _keep(place, found, wanted, opener, options.progress)
    kept = open_arrays(place)
    x = to_inputs(kept["x"], "image")
    largest = float(x.max())
    if form is None and kept["wide"]:
        check_bits(round(65535 * largest))
    scaled, skipped = f"{scaled_to(largest)}, read from disk", tuple(map(str, kept["skipped"]))
    part = Part(taken(x, kept["rows"]), kept["y"], skipped, str(kept["layout"]), scaled)
    left = len(images) - int(kept["used"]) if table else 0
    return part, (bool(kept["colour"]), (int(kept["size"][0]), int(kept["size"][1]))), left


def _keep(place: Path, files: "list[Found]", form: Form, opener: "Opener", progress: Progress) -> None:
    """Decode images once into a file of bytes (of 16 bits or floats, if some image has them)."""
    headers = [file.header for file in files]
    dtype = pixel_type(headers)
    blank = np.zeros((3 if form[0] else 1, *form[1]), dtype)
    rows: list[int] = []
    facts = {"colour": form[0], "size": form[1], "layout": sizes_note(headers, form[1]), "rows": rows}

    def decoded() -> Iterator[np.ndarray]:
        for i, pixels in enumerate(_decoded(files, *form, opener, progress)):
            rows.extend([] if pixels is None else [i])
            yield blank if pixels is None else to_type(pixels, dtype)
        facts["y"] = np.array([files[i].label for i in rows], dtype=np.str_)
        facts["skipped"] = np.array(sorted(opener.skipped), dtype=np.str_)
        facts["used"] = len({file.path for file in files})
        facts["wide"] = all(header.wide for header in headers)

    keep(place, (len(files), *blank.shape), dtype, decoded(), facts)


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
    if not splits and all(map(subfolders, folders.values())):  # training_set, seg_test: not classes if all are such
        words = {word: path for name, path in folders.items() for word in named_splits(name.split("_")).values()}
        splits = named_splits(words)
        folders = words if "train" in splits and len(splits) == len(folders) else folders
    # A class may be called "train"; then it holds images, not classes.
    only_splits = bool(splits) and len(splits) == len(folders)
    if not only_splits and not ("train" in splits and subfolders(folders[splits["train"]])):
        return folder, None, ""
    train, test, said = train_and_test(folders, f"folder {folder}")
    return folders[train], None if test is None else folders[test], said


@dataclass(frozen=True, slots=True)
class Found:
    """An image file, its class, and what its header says."""

    path: str
    label: str  # name of its class folder, or its label in a table
    header: Header


T = TypeVar("T")


@dataclass
class Opener:
    """Opens image files; skips or refuses those that cannot be read."""

    skip_bad: bool = False  # skip and note them, instead of raising
    skipped: list[str] = field(default_factory=list)

    def read(self, path: Path | str, action: Callable[[Image.Image], T]) -> T | None:
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
    """Read the pixels of image files into memory."""
    x = torch.empty(len(files), 3 if colour else 1, *size)
    labels: list[str] = []
    for file, pixels in zip(files, _decoded(files, colour, size, opener, progress), strict=True):
        if pixels is not None:
            x[len(labels)] = torch.from_numpy(pixels)
            labels.append(file.label)
    note = sizes_note([file.header for file in files], size)
    y = np.array(labels, dtype=np.str_)
    x = x[: len(labels)]
    scaled = scaled_to(float(x.max()) if len(x) else 1.0)
    return Part(x, y, tuple(sorted(opener.skipped)), note, scaled)


def _decoded(
    files: list[Found], colour: bool, size: tuple[int, int], opener: Opener, progress: Progress
) -> Iterator[np.ndarray | None]:
    """Give the pixels of every file in order, decoded in as many threads as there are cores: Pillow lets them run."""

    def read(file: Found) -> np.ndarray | None:
        return opener.read(file.path, lambda picture: to_pixels(picture, colour, size))

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        for start in range(0, len(files), BLOCK):
            for i, pixels in enumerate(pool.map(read, files[start : start + BLOCK]), start + 1):
                yield pixels
                progress("reading images", i, len(files))


def image_files(folder: Path) -> Iterator[Path]:
    """Give the files below a folder whose name ends like an image's, in order; hidden ones are left out."""
    endings = {e for e, name in Image.registered_extensions().items() if name in Image.OPEN}
    yield from (path for path in _files(folder) if path.suffix.lower() in endings and path.name[0] != ".")


def _files(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        elif entry.is_file():
            yield Path(entry.path)


def _found(folder: Path, label: str, opener: Opener) -> list[Found]:
    """Return all readable images below a folder, with one label."""
    headers = ((path, opener.read(path, read_header)) for path in image_files(folder))
    return [Found(str(path), label, header) for path, header in headers if header is not None]


def _all_images(folder: Path, opener: Opener) -> list[Found]:
    if found := _found(folder, "", opener):
        return found
    raise InputError(
        f"folder {folder} must hold images of a format that Pillow reads (png, jpg, tif, bmp, webp, ...); "
        f"it holds none."
    )


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
        raise InputError(f"{table} must be a table of text (CSV, UTF-8); it cannot be read: {error}.") from error
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
    for row in rows if _plain(rows[0][columns[0]]) in files else rows[1:]:
        if len(row) <= max(columns):
            raise InputError(f"every line of {table} must hold a file and a label; one is {','.join(row)!r:.60}.")
        name, label = _plain(row[columns[0]]), row[columns[1]].strip()
        if name not in files and not opener.skip_bad:
            raise InputError(f"{table} lists {name}, which is no image in {folder}. Remove the line (or --skip-bad).")
        path = files.get(name, folder / name)
        header = opener.read(path, read_header)
        found += [] if header is None else [Found(str(path), label, header)]
    if not found:
        raise InputError(f"{table} must list at least one readable image; it lists none.")
    return found


def _plain(path: str) -> str:
    """Return the path in a table as a folder lists it, which may begin with ./ or have backslashes."""
    return normpath(path.strip().replace("\\", "/"))
