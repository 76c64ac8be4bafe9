"""The names of transformations and their units: one table for `learn`, `amortize`, `audit`, `adapt` and `export`.

`build` makes the transformation that words describe. Nothing here imports torch until one is built.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from augury.core.errors import InputError, choose
from augury.core.units import DEGREES, FACTOR, PER_CENT, PLAIN, SIGMA, Unit, WidthSpec, pixels, samples

if TYPE_CHECKING:
    from augury.transforms.base import Transform


@dataclass(frozen=True)
class Word:
    """What a word means."""

    what: str  # one line about it
    unit: Unit | Callable[[int], Unit] | None = None
    """Unit of its width, or how that follows from the side of an image; None for a word that takes no amount."""
    upper: float = math.inf  # largest eta that means anything new
    parts: tuple[str, ...] = ()  # the words that it combines; none for a single width
    needs_rgb: bool = False  # whether it means something for three channels only

    def spec(self, name: str, side: int = 2) -> WidthSpec:
        """Return name, unit and bound of the width on data of `side` pixels (samples)."""
        unit = self.unit(side) if callable(self.unit) else self.unit
        return WidthSpec(name, unit or PLAIN, self.upper)

    @property
    def symbol(self) -> str:
        """What follows the number, such as "deg", "px", "factor" or "%"; empty for a plain number."""
        return self.spec("").unit.symbol


# An image that is shifted by more than half its side, or scaled more than sevenfold, shows nothing: all views are then
# alike, the evidence is flat, and a width would drift.
AFFINE = {
    "affine": Word(
        "the six generators of paper A, each with its own width: translation, rotation, scale and shear",
        parts=("translate_x", "translate_y", "rotation", "scale_x", "scale_y", "shear"),
    ),
    "similarity": Word(
        "translation, rotation and joint scale: the maps that keep shapes",
        parts=("translate_x", "translate_y", "rotation", "scale_joint"),
    ),
    "translation": Word("translate_x and translate_y", pixels, 1.0, ("translate_x", "translate_y")),
    "scale": Word("scale_x and scale_y, independent of each other", FACTOR, 2.0, ("scale_x", "scale_y")),
    "translate_x": Word("horizontal translation", pixels, 1.0),
    "translate_y": Word("vertical translation", pixels, 1.0),
    "rotation": Word("rotation about the centre", DEGREES, math.pi),
    "scale_x": Word("scale along x", FACTOR, 2.0),
    "scale_y": Word("scale along y", FACTOR, 2.0),
    "scale_joint": Word("scale both axes by one factor", FACTOR, 2.0),
    "shear": Word("shear", PLAIN),
}
COLOR = {
    "color": Word(
        "every colour transformation that fits the channels",
        parts=("brightness", "contrast", "saturation", "hue", "grey", "blur"),
    ),
    "brightness": Word("multiply all channels", FACTOR, math.log(10)),
    "contrast": Word("stretch about the mean grey", FACTOR, math.log(10)),
    "saturation": Word("stretch about each pixel's grey (3 channels)", FACTOR, math.log(10), needs_rgb=True),
    "hue": Word("rotate colours about the grey axis (3 channels)", DEGREES, math.pi, needs_rgb=True),
    "grey": Word("fade to grey (3 channels)", PER_CENT, 1.0, needs_rgb=True),
    "blur": Word("Gaussian blur", SIGMA, 64.0),
}
FINITE = {
    "flip": Word("the same as flip_x", PER_CENT, 1 / 2, ("flip_x",)),
    "flip_x": Word("horizontal flip", PER_CENT, 1 / 2),
    "flip_y": Word("vertical flip", PER_CENT, 1 / 2),
    "C2": Word("rotations by 180 degrees", PER_CENT, 1 / 2),
    "C4": Word("rotations by 90 degrees (square images); also C3, C8, any Cn", PER_CENT, 3 / 4),
    "T3": Word("cyclic translations by thirds of the image; also T3_x, T3_y, any Tn", PER_CENT, 8 / 9),
}
SIGNAL = {
    "signal": Word("time_shift, time_stretch and amplitude", parts=("time_shift", "time_stretch", "amplitude")),
    "outline": Word(
        "circular_shift and mirror: a closed outline has no start and no sense of turning",
        parts=("mirror", "circular_shift"),
    ),
    "mirror": Word("reversal of time", PER_CENT, 1 / 2),
    "circular_shift": Word("shift of a closed signal: what leaves at one end enters at the other", samples, 1.0),
    "time_shift": Word("shift in time", samples),
    "time_stretch": Word("stretch of time", FACTOR),
    "amplitude": Word("gain", FACTOR),
}
POINTS = {
    "rotation3d": Word(
        "rotation_x, rotation_y and rotation_z", DEGREES, math.pi, ("rotation_x", "rotation_y", "rotation_z")
    ),
    "rotation_x": Word("rotation about the x axis", DEGREES, math.pi),
    "rotation_y": Word("rotation about the y axis", DEGREES, math.pi),
    "rotation_z": Word("rotation about the z axis", DEGREES, math.pi),
    "scale": Word("one factor for all axes", FACTOR),
}
COORDINATES = {
    name: replace(
        word, unit=PLAIN if word.unit is pixels else word.unit, upper=word.upper if name == "rotation" else math.inf
    )
    for name, word in AFFINE.items()
}
"""The same maps of plain coordinates, which have no pixels and no border."""

WORDS = {"image": AFFINE | COLOR | FINITE, "signal": SIGNAL, "points": POINTS, "coordinates": COORDINATES}
"""Every transformation, by kind of data and name."""

_CYCLIC = re.compile(r"C([1-9]\d*)")
_TORUS = re.compile(r"T([1-9]\d*)(?:_([xy]))?")


def known(name: str, kind: str) -> Word:
    """Return what a word means for a kind of data, or raise an error that names the words that fit."""
    if kind not in WORDS:
        raise InputError(
            f"transformations are known for data of kind {', '.join(WORDS)}; got kind '{kind}'. "
            f"Reshape the data, or write a transformation of your own (augury.Transform)."
        )
    if name in WORDS[kind]:
        return WORDS[kind][name]
    if kind == "image" and (match := _CYCLIC.fullmatch(name) or _TORUS.fullmatch(name)):
        n = int(match[1]) ** (2 if name[0] == "T" and match[2] is None else 1)
        return Word(f"a group of {n} elements", PER_CENT, (n - 1) / n)
    elsewhere = [other for other, words in WORDS.items() if name in words]
    if elsewhere:
        raise InputError(f"'{name}' acts on data of kind {' or '.join(elsewhere)}. {_fitting(kind)}")
    choose("transformation", name, WORDS[kind])
    raise AssertionError  # choose has raised


def _fitting(kind: str) -> str:
    return f"For data of kind {kind} there are {', '.join(WORDS[kind])}."


def single(names: Sequence[str], kind: str) -> list[str]:
    """Return the single widths (and finite groups) that words combine, each once, in the order given."""
    found = [part for name in names for part in known(name, kind).parts or (name,)]
    return list(dict.fromkeys(found))


def build(words: str | Sequence[str], kind: str, shape: Sequence[int], sampling: str = "independent") -> "Transform":
    """Return the transformation that the words describe, with all widths at 0.

    Parts of one family share one transformation; families act in the order finite groups, affine, colour.
    """
    given = words.split(",") if isinstance(words, str) else words
    asked = [word.strip() for word in given if word.strip()]
    names = single(asked, kind)
    if not names:
        raise InputError("name at least one transformation; got none. " + _fitting(kind))
    if kind == "image":
        return _image(asked, names, shape, sampling)
    if kind == "signal":
        return _signal(names, shape[-1], sampling)
    if kind == "points":
        from augury.transforms.points3d import Rotation3d

        return Rotation3d(names, sampling)
    from augury.transforms.affine2d import AffineCoordinates

    return AffineCoordinates(names, sampling)


def _image(asked: list[str], names: list[str], shape: Sequence[int], sampling: str) -> "Transform":
    from augury.transforms.affine2d import Affine2d
    from augury.transforms.color import Color
    from augury.transforms.compose import Compose

    C, H, W = shape
    misfits = [name for name in names if C != 3 and known(name, "image").needs_rgb]
    if any(name in asked for name in misfits):
        fits = ", ".join(name for name in COLOR["color"].parts if not COLOR[name].needs_rgb)
        raise InputError(
            f"{' and '.join(misfits)} need images with 3 channels; yours have {C}. For {C} there are {fits}."
        )
    parts: list[Transform] = [_finite(name, H, W, sampling) for name in names if name not in AFFINE | COLOR]
    if affine := [name for name in names if name in AFFINE]:
        parts.append(Affine2d((H, W), affine, sampling))
    if colors := [name for name in names if name in COLOR and name not in misfits]:
        parts.append(Color(colors, sampling))
    return parts[0] if len(parts) == 1 else Compose(parts)


def _signal(names: list[str], length: int, sampling: str) -> "Transform":
    from augury.transforms.compose import Compose
    from augury.transforms.signal1d import SIGNAL_GENERATORS, CircularShift, Mirror, Signal1d

    parts: list[Transform] = [Mirror(sampling=sampling)] if "mirror" in names else []
    parts += [CircularShift(length, sampling)] if "circular_shift" in names else []
    if others := [name for name in names if name in SIGNAL_GENERATORS]:
        parts.append(Signal1d(length, others, sampling))
    return parts[0] if len(parts) == 1 else Compose(parts)


def _finite(word: str, H: int, W: int, sampling: str) -> "Transform":
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
