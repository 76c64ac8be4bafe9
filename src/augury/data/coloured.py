"""Coloured-rotated digits (paper C): one set of images, three tasks with different invariances.

Every grey image is rotated by one of seven angles, then put into one of the three colour channels, the others staying
black; both at random with a fixed seed. The tasks:

    digit     needs neither rotation nor colour        descriptor (rotation, colour) = (1, 1)
    rotation  needs the angle, not the colour                                          (0, 1)
    colour    needs the colour, not the angle                                          (1, 0)
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.rng import generator, spawn
from augury.data.dataset import Dataset
from augury.data.variants import resample, rotations

ANGLES = (-90, -60, -30, 0, 30, 60, 90)
"""Degrees, counter-clockwise."""

COLOURS = ("red", "green", "blue")

DESCRIPTORS = {"digit": (1, 1), "rotation": (0, 1), "colour": (1, 0)}
"""The tasks, each with what it should be invariant to: (rotation, colour)."""


def coloured_rotated(data: Dataset, task: str = "digit", seed: int = 0) -> Dataset:
    """Return the coloured and rotated images with the labels of one task."""
    choose("task", task, DESCRIPTORS)
    return coloured_rotated_tasks(data, seed)[task]


def coloured_rotated_tasks(data: Dataset, seed: int = 0) -> dict[str, Dataset]:
    """Return the three tasks on the same images, whose pixels they share."""
    if data.kind != "image" or data.task != "classification" or data.input_shape[0] != 1:
        raise InputError(
            f"coloured-rotated digits are made of grey images [N, 1, H, W] with class labels; "
            f"got {data.kind}s {list(data.input_shape)} for {data.task}. Try mnist5k, mnist or kmnist10k."
        )
    x_train, angle_train, colour_train = _draw(data.x_train, generator(seed))
    x_test, angle_test, colour_test = _draw(data.x_test, spawn(generator(seed)))
    labels = {
        "digit": (data.y_train, data.y_test, data.class_names, 90.0),
        "rotation": (angle_train, angle_test, tuple(f"{a} deg" for a in ANGLES), 0.0),
        "colour": (colour_train, colour_test, COLOURS, 90.0),
    }
    return {
        task: replace(
            data,
            x_train=x_train,
            x_test=x_test,
            y_train=y_train,
            y_test=y_test,
            class_names=names,
            source=f"{data.source}, coloured_rotated ({task})",
            planted={"rotation": width},
        )
        for task, (y_train, y_test, names, width) in labels.items()
    }


def _draw(
    x: Float[Tensor, "N 1 H W"], rng: torch.Generator
) -> tuple[Float[Tensor, "N 3 H W"], Int[Tensor, " N"], Int[Tensor, " N"]]:
    """Return the images, and which angle and which colour each got."""
    N = len(x)
    # Both from one draw per image, so that the first n images of a set do not depend on how many follow.
    cell = torch.randint(len(ANGLES) * len(COLOURS), (N,), generator=rng)
    angle, colour = cell // len(COLOURS), cell % len(COLOURS)
    degrees = torch.tensor(ANGLES, dtype=torch.float64)[angle]
    grey = resample(x, rotations(degrees))
    out = torch.zeros(N, len(COLOURS), *x.shape[2:], dtype=x.dtype)
    out[torch.arange(N), colour] = grey[:, 0]
    return out, angle, colour
