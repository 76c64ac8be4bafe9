"""From the words a user types to a transformation of their data. Free of torch until one is built."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from augury.core.errors import InputError, choose

if TYPE_CHECKING:
    import augury.transforms.base

AFFINE = {
    "affine": "all six generators below, each with its own width",
    "similarity": "translation, rotation and joint scale: the maps that keep shapes",
    "translation": "translate_x and translate_y",
    "scale": "scale_x and scale_y, independent of each other",
    "translate_x": "shift to the left and right",
    "translate_y": "shift up and down",
    "rotation": "turn about the centre",
    "scale_x": "stretch along x",
    "scale_y": "stretch along y",
    "scale_joint": "scale both axes by one factor",
    "shear": "shear",
}
COLOR = {
    "color": "every colour transformation that fits the channels",
    "brightness": "multiply all channels",
    "contrast": "stretch about the mean grey",
    "saturation": "stretch about each pixel's grey (3 channels)",
    "hue": "turn colours about the grey axis (3 channels)",
    "grey": "fade to grey (3 channels)",
    "blur": "Gaussian blur",
}
FINITE = {
    "flip_x": "mirror left and right",
    "flip_y": "mirror top and bottom",
    "C2": "half turns",
    "C4": "quarter turns (square images); any Cn will do: C3, C8, ...",
    "T3": "translations by thirds of the image on a torus; any Tn, also T3_x, T3_y",
}
SIGNAL = {
    "signal": "all of the three below",
    "time_shift": "shift in time",
    "time_stretch": "stretch of time",
    "amplitude": "gain",
}
POINTS = {
    "rotation3d": "rotation_x, rotation_y and rotation_z",
    "rotation_x": "turn about the x axis",
    "rotation_y": "turn about the y axis",
    "rotation_z": "turn about the z axis",
    "scale": "one factor for all axes",
}
WORDS = {
    "image": AFFINE | COLOR | FINITE,
    "signal": SIGNAL,
    "points": POINTS,
    "coordinates": AFFINE,
}
"""What can be asked for, by kind of data, and what it means."""

_CYCLIC = re.compile(r"C([1-9]\d*)")
_TORUS = re.compile(r"T([1-9]\d*)(?:_([xy]))?")


def build(
    words: str | Sequence[str], kind: str, shape: Sequence[int], sampling: str = "independent"
) -> "augury.transforms.base.Transform":
    """Return the transformation that the words describe, with all widths at 0.

    Parts of one family share one transformation; families act in the order finite groups, affine, colour.
    """
    given = words.split(",") if isinstance(words, str) else words
    asked = list(dict.fromkeys(_known(word.strip(), kind) for word in given if word.strip()))
    if not asked:
        raise InputError("name at least one transformation; got none. " + _fitting(kind))
    from augury.transforms.compose import Compose

    makers = {"image": _image, "signal": _signal, "points": _points, "coordinates": _coordinates}
    parts = makers[kind](asked, tuple(shape), sampling)
    return parts[0] if len(parts) == 1 else Compose(parts)


def _fitting(kind: str) -> str:
    return f"For data of kind {kind} there are {', '.join(WORDS[kind])}."


def _known(word: str, kind: str) -> str:
    """Return the word if it fits the kind of data, else raise an error that names what fits."""
    if kind not in WORDS:
        raise InputError(
            f"transformations are known for data of kind {', '.join(WORDS)}; got kind '{kind}'. "
            f"Reshape the data, or write a transformation of your own (augury.Transform)."
        )
    if word in WORDS[kind] or (kind == "image" and (_CYCLIC.fullmatch(word) or _TORUS.fullmatch(word))):
        return word
    elsewhere = [other for other, known in WORDS.items() if word in known]
    if elsewhere:
        raise InputError(f"'{word}' acts on data of kind {' or '.join(elsewhere)}. {_fitting(kind)}")
    return choose("transformation", word, WORDS[kind])


def _image(
    asked: list[str], shape: tuple[int, ...], sampling: str
) -> "list[augury.transforms.base.Transform]":
    from augury.transforms.affine2d import Affine2d
    from augury.transforms.color import COLORS, NEED_RGB, Color

    C, H, W = shape
    parts = [_finite(word, H, W, sampling) for word in asked if word not in AFFINE | COLOR]
    affine = [word for word in asked if word in AFFINE]
    if affine:
        parts.append(Affine2d((H, W), affine, sampling))
    fits = [name for name in COLORS if C == 3 or name not in NEED_RGB]
    colors = [name for word in asked if word in COLOR for name in (fits if word == "color" else [word])]
    misfits = [name for name in colors if name not in fits]
    if misfits:
        raise InputError(
            f"{' and '.join(misfits)} need images with 3 channels; yours have {C}. "
            f"For {C} there are {', '.join(fits)}."
        )
    if colors:
        parts.append(Color(colors, sampling))
    return parts


def _finite(word: str, H: int, W: int, sampling: str) -> "augury.transforms.base.Transform":
    from augury.transforms.finite_groups import CyclicRotation, Flip, Translations

    if word.startswith("flip"):
        return Flip(word[-1], sampling=sampling)
    if match := _CYCLIC.fullmatch(word):
        if word == "C4" and H != W:
            raise InputError(f"C4 needs square images; yours are {H} x {W}. Crop them, or take C2.")
        return CyclicRotation(int(match[1]), sampling=sampling)
    n, axis = _TORUS.fullmatch(word).groups()  # type: ignore[union-attr]
    if int(n) > min(H, W):
        raise InputError(f"{word} needs at least {n} pixels along each axis; yours are {H} x {W}.")
    return Translations(int(n), axis or "xy", sampling=sampling)


def _signal(
    asked: list[str], shape: tuple[int, ...], sampling: str
) -> "list[augury.transforms.base.Transform]":
    from augury.transforms.signal1d import SIGNAL_GENERATORS, Signal1d

    names = list(SIGNAL_GENERATORS) if "signal" in asked else asked
    return [Signal1d(shape[-1], names, sampling)]


def _points(
    asked: list[str], shape: tuple[int, ...], sampling: str
) -> "list[augury.transforms.base.Transform]":
    from augury.transforms.points3d import AXES, Rotation3d

    names = [name for word in asked for name in (AXES if word == "rotation3d" else (word,))]
    return [Rotation3d(names, sampling)]


def _coordinates(
    asked: list[str], shape: tuple[int, ...], sampling: str
) -> "list[augury.transforms.base.Transform]":
    from augury.transforms.affine2d import AffineCoordinates

    return [AffineCoordinates(asked, sampling)]
