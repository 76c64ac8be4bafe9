"""A folder of images with one sub-folder per class, in any format that Pillow reads.

    pets/cat/1.jpg  pets/cat/2.png  pets/dog/1.jpg  ...       split by seed, the same share of every class
    pets/train/cat/1.jpg  ...  pets/test/dog/9.jpg  ...       or with a test set of its own

Images of mixed sizes are brought to one: `size` if given, else the most common size of the training images; cut at the
centre to its proportions, then resampled (see `pictures`). If any training image has colour, all get three channels.
"""

from pathlib import Path

import numpy as np
import torch

from augury.core.errors import InputError
from augury.data.assemble import Options, Part, assemble
from augury.data.dataset import Dataset
from augury.data.image_files import Found, Opener, find_images
from augury.data.pictures import common_size, to_pixels
from augury.data.progress import Progress, silent

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
