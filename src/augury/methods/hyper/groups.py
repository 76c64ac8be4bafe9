"""The invariance groups that `amortize` spans: a name, and random operations whose views should have the same features.

    rotation                      any word of `transforms.vocabulary`, as everywhere else
    translation:4px               with an amount in the word's unit (degrees, pixels, a factor, per cent)
    blur:1.5@50                   on 50 % of the images only
    turn=rotation:30+flip         a group of your own: operations joined by "+"

Beside the words there are the random operations of SimCLR, and paper C's groups ventral and dorsal. Imports no torch.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from augury.core.errors import InputError, choose
from augury.core.units import FACTOR, PER_CENT, pixels
from augury.transforms.vocabulary import FINITE, WORDS, Word, known

RANDOM = {
    "crop": Word("a random window, resized; the amount is the smallest area", PER_CENT, 1.0),
    "jitter": Word("brightness, contrast, saturation and a quarter of it in hue", FACTOR, math.log(10)),
    "greyscale": Word("the same share of colour taken from every image (3 channels)", PER_CENT, 1.0, needs_rgb=True),
    "channels": Word("a random cyclic permutation of the channels (3 channels)", needs_rgb=True),
}  # fmt: skip
"""Random operations that are not differentiable, so that no width can be learned."""

OPERATIONS = WORDS["image"] | RANDOM  # every operation by its name

GROUPS = {
    "ventral": "crop:20+flip",
    "dorsal": "jitter:1.5@80+greyscale@20+blur:1.5@50",
    "recolor": "channels",
    "light": "brightness+contrast",
}
"""Named groups; ventral and dorsal are paper C's."""

AMOUNTS = {"rotation": 90.0, "shear": 0.3, "hue": 60.0, "grey": 100.0, "blur": 1.5, "crop": 20.0, "greyscale": 100.0}
"""Default amounts in their units; else a factor of 1.5, 15 % of the side, and all of a finite group."""

SYMBOLS = {"factor": "x"}
_STEP = re.compile(r"(?P<name>[^:@]*)(?::(?P<amount>[^:@]*?)(?P<unit>deg|px|x|%)?)?(?:@(?P<chance>[^:@]*?)%?)?")


@dataclass(frozen=True)
class Step:
    """An operation of a group."""

    name: str  # a key of `OPERATIONS`, or any Cn or Tn
    amount: float | None = None
    """How far it goes, in its unit; None if it has none, or depends on the size of the images."""
    chance: float = 100.0  # per cent of the images that it is applied to

    def __str__(self) -> str:
        symbol = operation(self.name).symbol
        amount = "" if self.amount is None else f":{self.amount:g}{SYMBOLS.get(symbol, symbol)}"
        return f"{self.name}{amount}" + ("" if self.chance == 100 else f"@{self.chance:g}%")


@dataclass(frozen=True)
class Group:
    """An invariance group."""

    name: str  # what its entry of the descriptor is called
    steps: tuple[Step, ...]  # its operations; at least one

    def __str__(self) -> str:
        return "+".join(map(str, self.steps))


def operation(name: str) -> Word:
    """Return what an operation means."""
    if name not in OPERATIONS and not re.fullmatch(r"[CT]\d+(_[xy])?", name):
        choose("invariance group", name, [*GROUPS, *OPERATIONS])
    return RANDOM[name] if name in RANDOM else known(name, "image")


def parse_groups(
    words: str | Sequence[str] | Mapping[str, str], shape: Sequence[int] | None = None
) -> tuple[Group, ...]:
    """Parse groups, for images of a shape [C, H, W]; without it, only check the words."""
    if isinstance(words, Mapping):
        pairs = list(words.items())
    else:
        given = words.split(",") if isinstance(words, str) else list(words)
        pairs = [_name_and_text(word.strip()) for word in given if word.strip()]
    names = [name for name, _ in pairs]
    if not pairs:
        there = ", ".join([*GROUPS, *OPERATIONS])
        raise InputError(f"name at least one invariance group, such as rotation,color; there are {there}.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"every invariance group must have a name of its own; '{twice}' comes twice.")
    return tuple(_group(name, text, shape) for name, text in pairs)


def _name_and_text(word: str) -> tuple[str, str]:
    name, equals, text = word.partition("=")
    if equals:
        return name.strip(), text.strip()
    plain = re.split("[:@]", word)[0].strip()
    if plain in GROUPS and plain != word:
        raise InputError(f"group '{plain}' is {GROUPS[plain]}; give amounts to these: {plain}={GROUPS[plain]}.")
    return plain, word


def _group(name: str, text: str, shape: Sequence[int] | None) -> Group:
    words = [word.strip() for word in text.split("+") if word.strip()]
    words = [inner for word in words for inner in GROUPS.get(word, word).split("+")]
    steps = [step for word in words for step in _steps(word, shape)]
    if not steps or not name:
        raise InputError(
            f"an invariance group must have a name and at least one transformation, such as turn=rotation:30+flip; "
            f"got '{name}={text}'."
        )
    named = [step.name for step in steps]
    if len(set(named)) < len(named):
        twice = next(word for word in named if named.count(word) > 1)
        raise InputError(f"a group must name each transformation once; '{name}={text}' has {twice} twice.")
    fits = [step for step in steps if shape is None or shape[0] == 3 or not operation(step.name).needs_rgb]
    if not fits:
        raise InputError(
            f"group '{name}' ({text}) has no transformation of images with {shape and shape[0]} channels: it needs "
            f"red, green and blue. Give it others, such as {name}=brightness+contrast+blur."
        )
    return Group(name, tuple(fits))


def _steps(text: str, shape: Sequence[int] | None) -> list[Step]:
    """Return the steps of one operation: several if a word combines several widths."""
    match = _STEP.fullmatch(text)
    if match is None:
        raise InputError(f"write an operation as name:amount@chance, such as blur:1.5@50; got '{text}'.")
    name, amount, chance = match["name"].strip(), match["amount"], match["chance"]
    word = operation(name)
    if word.unit is None and amount is not None:
        of = f": give amounts to {', '.join(word.parts)}" if word.parts else ""
        raise InputError(f"{name} takes no amount{of}; got '{text}'.")
    share = 100.0 if chance is None else _number(chance, f"the chance of {name} (per cent)", 0.0, 100.0)
    number = None if amount is None else _checked(name, word, amount, match["unit"], shape)
    return [Step(part, _default(part, shape) if number is None else number, share) for part in word.parts or (name,)]


def _default(name: str, shape: Sequence[int] | None) -> float | None:
    word = operation(name)
    if word.unit is pixels:
        return None if shape is None else 0.15 * min(shape[-2:])
    if word.unit is FACTOR:
        return 1.5
    finite = name in FINITE or name not in OPERATIONS
    return 100 * word.upper if finite else AMOUNTS.get(name)


def _checked(name: str, word: Word, amount: str, unit: str | None, shape: Sequence[int] | None) -> float:
    symbol = SYMBOLS.get(word.symbol, word.symbol)
    if unit not in (None, symbol):
        raise InputError(f"the amount of {name} is in {word.symbol or 'no unit'}; got '{amount}{unit}'.")
    least, most = (1.0 if word.unit is FACTOR else 0.0), math.inf
    if word.unit is not pixels or shape is not None:
        spec = word.spec(name, 2 if shape is None else min(shape[-2:]))
        most = math.inf if math.isinf(spec.upper) else spec.unit.to_person(spec.upper)
    return _number(amount, f"the amount of {name} ({word.symbol or 'a number'})", least, most)


def _number(text: str, what: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise InputError(f"{what} must be a number; got '{text}'.") from error
    if not least < value <= most * (1 + 1e-6):
        raise InputError(f"{what} must be above {least:g} and at most {most:g}; got {value:g}.")
    return value
