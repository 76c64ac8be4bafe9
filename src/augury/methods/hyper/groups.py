"""What an invariance group is: a name, and the random operations whose views it should not tell apart.

    rotation                      a group known by name, or any operation
    rotation,color                two groups: K = 2
    turn=rotation:30+flip         a group of your own: operations joined by "+", each with an amount if you like

Free of torch, so that the command line can list and check groups at once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from augury.core.errors import InputError, choose


@dataclass(frozen=True)
class Operation:
    """One random operation on images."""

    family: str
    """How it is carried out: "affine", "flip", "turn", "crop", "color" or "channels"."""
    amount: float
    """How far it goes unless told."""
    unit: str
    """What the amount is."""
    widths: Callable[[float], dict[str, float]]
    """From the amount to eta, by the name of the generator (affine) or colour transformation."""
    chance: float = 1.0
    """The share of images that it touches."""
    needs_rgb: bool = False
    """Whether it means something for three channels only."""
    largest: float = math.inf
    """Largest sensible amount."""


def _one(name: str) -> Callable[[float], dict[str, float]]:
    return lambda amount: {name: amount}


def _log(*names: str) -> Callable[[float], dict[str, float]]:
    return lambda amount: {name: math.log(amount) for name in names}


def _radians(name: str) -> Callable[[float], dict[str, float]]:
    return lambda degrees: {name: math.radians(degrees)}


def _shift(share: float) -> dict[str, float]:
    return {"translate_x": 2 * share, "translate_y": 2 * share}  # a side is 2 long


def _jitter(factor: float) -> dict[str, float]:
    # SimCLR's proportions: hue by a quarter of the strength, strength 0.4 = factor 1.5 about half of its full one.
    strength = math.log(factor)
    return {
        "brightness": strength,
        "contrast": strength,
        "saturation": strength,
        "hue": math.pi / 2 * strength,
    }


OPERATIONS: dict[str, Operation] = {
    "rotation": Operation("affine", 90.0, "degrees", _radians("rotation"), largest=180.0),
    "translation": Operation("affine", 0.15, "of the side", _shift, largest=0.5),
    "scale": Operation("affine", 1.5, "times", _log("scale_joint"), largest=7.0),
    "shear": Operation("affine", 0.3, "", _one("shear"), largest=2.0),
    "flip": Operation("flip", 1.0, "", _one("x"), chance=0.5),
    "flip_y": Operation("flip", 1.0, "", _one("y"), chance=0.5),
    "turns": Operation("turn", 4.0, "quarter turns", _one("turns"), largest=4.0),
    "crop": Operation("crop", 0.2, "smallest area", _one("area"), largest=1.0),
    "brightness": Operation("color", 1.5, "times", _log("brightness"), largest=10.0),
    "contrast": Operation("color", 1.5, "times", _log("contrast"), largest=10.0),
    "saturation": Operation("color", 1.5, "times", _log("saturation"), needs_rgb=True, largest=10.0),
    "hue": Operation("color", 60.0, "degrees", _radians("hue"), needs_rgb=True, largest=180.0),
    "jitter": Operation("color", 1.5, "times", _jitter, chance=0.8, needs_rgb=True, largest=10.0),
    "grey": Operation("color", 1.0, "of all colour", _one("grey"), chance=0.2, needs_rgb=True, largest=1.0),
    "blur": Operation("color", 1.5, "pixels", lambda sigma: {"blur": sigma**2}, chance=0.5, largest=8.0),
    "channels": Operation("channels", 1.0, "", _one("channels"), needs_rgb=True),
}
"""Every operation by its name."""

GROUPS: dict[str, str] = {
    "color": "jitter+grey",
    "ventral": "crop+flip",
    "dorsal": "jitter+grey+blur",
    "affine": "rotation+translation+scale+shear",
    "recolor": "channels",
    "light": "brightness+contrast",
}
"""Groups that are more than one operation; ventral and dorsal are paper C's."""


@dataclass(frozen=True)
class Step:
    """An operation as it was asked for."""

    name: str
    """A key of `OPERATIONS`."""
    amount: float
    """How far it goes."""

    @property
    def operation(self) -> Operation:
        """Its row."""
        return OPERATIONS[self.name]

    def __str__(self) -> str:
        return f"{self.name}:{self.amount:g}"


@dataclass(frozen=True)
class Group:
    """An invariance group."""

    name: str
    """What its entry of the descriptor is called."""
    steps: tuple[Step, ...]
    """Its operations; at least one."""

    def __str__(self) -> str:
        return "+".join(map(str, self.steps))


def parse_groups(
    words: str | Sequence[str] | Mapping[str, str], channels: int | None = None
) -> tuple[Group, ...]:
    """Return the groups that a user named."""
    if isinstance(words, Mapping):
        pairs = [(name, text) for name, text in words.items()]
    else:
        given = words.split(",") if isinstance(words, str) else list(words)
        pairs = [_name_and_text(word.strip()) for word in given if word.strip()]
    if not pairs:
        raise InputError(f"name at least one invariance group, such as rotation,color; there are {_known()}.")
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"every invariance group must have a name of its own; '{twice}' comes twice.")
    return tuple(_group(name, text, channels) for name, text in pairs)


def _known() -> str:
    return ", ".join([*GROUPS, *OPERATIONS])


def _name_and_text(word: str) -> tuple[str, str]:
    name, equals, text = word.partition("=")
    if equals:
        return name.strip(), text.strip()
    plain = word.partition(":")[0].strip()
    choose("invariance group", plain, [*GROUPS, *OPERATIONS])
    if ":" in word and plain in GROUPS:
        raise InputError(
            f"group '{plain}' is {GROUPS[plain]}; give amounts to these: {plain}={GROUPS[plain]}."
        )
    return plain, GROUPS.get(plain, word)


def _group(name: str, text: str, channels: int | None) -> Group:
    words = [word.strip() for word in text.split("+") if word.strip()]
    words = [inner for word in words for inner in GROUPS.get(word, word).split("+")]
    steps = [_step(word) for word in words]
    if not steps or not name:
        raise InputError(
            f"an invariance group must have a name and at least one transformation, such as turn=rotation:30+flip; "
            f"got '{name}={text}'."
        )
    fits = [step for step in steps if channels in (None, 3) or not step.operation.needs_rgb]
    if channels not in (None, 3) and any(step.name == "jitter" for step in steps):
        jitter = next(step.amount for step in steps if step.name == "jitter")
        fits = [Step("brightness", jitter), Step("contrast", jitter), *fits]
    if not fits:
        raise InputError(
            f"group '{name}' ({text}) has no transformation of images with {channels} channels: it needs red, green "
            f"and blue. Give it others, such as {name}=brightness+contrast+blur."
        )
    return Group(name, tuple(fits))


def _step(word: str) -> Step:
    name, colon, text = word.partition(":")
    operation = OPERATIONS[choose("transformation", name.strip(), OPERATIONS)]
    if not colon:
        return Step(name.strip(), operation.amount)
    try:
        amount = float(text)
    except ValueError as error:
        raise InputError(
            f"the amount of {name} must be a number ({operation.unit}); got '{text}'."
        ) from error
    least = 1.0 if operation.unit == "times" else 0.0
    if not least < amount <= operation.largest:
        raise InputError(
            f"the amount of {name} must be above {least:g} and at most {operation.largest:g} {operation.unit}; "
            f"got {amount:g}."
        )
    return Step(name.strip(), amount)
