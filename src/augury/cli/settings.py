"""Settings from flags and from a TOML file, merged and checked in one place: flags win. Loads no torch."""

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from augury.cli.console import note
from augury.cli.options import READING
from augury.config.learn import DEFAULT_METHOD, EVALUATED, EVALUATIONS, LearnConfig, method_name
from augury.config.synonyms import SYNONYMS, renamed
from augury.core.errors import InputError, choose
from augury.export.policy import Policy
from augury.models.networks import NETWORKS
from augury.records.record import Wrong, reader

NUMBERS, WORDS = dict[str, float], list[str]
CALLED: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    WORDS: "a list of texts",
    NUMBERS: "a table of numbers",
}
"""The types of settings, as messages name them."""
PER_CENT = re.compile(r"flip(_[xy])?|grey|[CT]\d+(_[xy])?")  # widths that are probabilities, given in per cent


def settings_of(config: type) -> dict[str, Any]:
    """Return the fields of a settings class that --set takes, with their types."""
    return {f.name: f.type for f in fields(config) if f.type in (int, float, str, bool) and f.name != "method"}


SETTINGS = settings_of(LearnConfig) | {
    "method": str, "model": str, "generators": WORDS, "widths": NUMBERS, "slight": NUMBERS,
}  # fmt: skip
KINDS: dict[str, Any] = {
    **dict.fromkeys(READING, str), "subset": int, "size": int, "test_fraction": float, "skip_bad": bool, "devices": int,
    **SETTINGS, "data": str, "policy": str, "run": str, "baseline": bool, "tensorboard": str,
}  # fmt: skip
"""Everything that a settings file may hold, with its type."""


@dataclass(frozen=True)
class LearnRequest:
    """The settings of `augury learn`, checked as far as possible without the data."""

    values: dict[str, Any]  # what was given, by name
    method: str
    settings: dict[str, Any]  # fields of `LearnConfig` that were given
    policy: Policy | None  # generators and widths of another run, if given

    @property
    def config(self) -> LearnConfig:
        """All settings, as far as they are known before the data are read."""
        return LearnConfig.for_method(self.method, **self.settings)

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of `augury.load`."""
        return {n: self.values[n] for n in READING if n in self.values} | {"seed": self.config.seed}

    @property
    def baseline(self) -> bool:
        """Whether the plain network is trained, too."""
        return bool(self.values.get("baseline", True)) and self.method != "plain"

    def folder(self, name: str) -> Path | None:
        """Return a folder that was named: "run" or "tensorboard"."""
        return Path(self.values[name]) if name in self.values else None

    def as_toml(self) -> str:
        """Return everything as TOML, defaults filled in."""
        config = {name: value for name, value in self.config.to_json().items() if name in SETTINGS}
        own = {name: self.values.get(name) for name in KINDS if name not in SETTINGS}
        return to_toml({"data": None, **own, "baseline": self.baseline, **config})


def merge(flags: Mapping[str, Any], file: Path | None = None) -> LearnRequest:
    """Merge flags over a settings file, and check the result."""
    values = {} if file is None else from_toml(file)
    for name, value in flags.items():
        if value is not None:
            values[name] = {**values.get(name, {}), **value} if name in ("widths", "slight") else value
    if "data" not in values:
        raise InputError("DATA must be given: a name (see augury data list), a folder of images, or an .npz.")
    policy = None
    if "policy" in values:
        for name in ("generators", "widths"):
            if values.get(name):
                raise InputError(f"give --policy or {name}, not both: a policy has generators and widths.")
        policy = Policy.read(values["policy"])
    method = method_name(values.get("method", "augmented" if policy else DEFAULT_METHOD))
    settings = {name: value for name, value in values.items() if name in SETTINGS and name != "method"}
    if "model" in settings:
        choose("model", settings["model"], NETWORKS)
    if "generators" in settings:
        settings["generators"] = tuple(settings["generators"])
    config = LearnConfig.for_method(method, **settings)
    if config.epochs and "evaluate_every" not in settings:  # as `augury.learn` does; --print-config shows it
        settings["evaluate_every"] = -(-config.epochs // EVALUATIONS)
        settings["evaluate_images"] = config.evaluate_images or EVALUATED
    return LearnRequest(values, method, settings, policy)


def pairs(
    texts: Iterable[str] | None, what: str, example: str, kinds: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Read name=value texts; `kinds` are the names that are allowed and their types. Default: any name, a number."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, _, value = (part.strip() for part in text.partition("="))
        if not (name and value):
            raise InputError(f"{what} must read name=value, such as {example}; got '{text}'.")
        if kinds is not None and name not in kinds:
            name = SYNONYMS.get(name, name)
        kind = float if kinds is None else kinds[choose(what, name, kinds)]
        try:
            found[name] = {"true": True, "false": False}[value.lower()] if kind is bool else kind(value)
        except (KeyError, ValueError) as error:
            raise InputError(f"{name} must be {CALLED[kind]}; got '{value}'.") from error
        if kind is float and not math.isfinite(found[name]):
            raise InputError(f"{name} must be a finite number; got '{value}'.")
    return found


def widths(texts: Iterable[str] | None, quiet: bool) -> dict[str, float]:
    """Read widths; a note is printed for a probability below 1 per cent, which may be meant as one of 0 to 1."""
    found: dict[str, float] = pairs(texts, "a width", "rotation=30")
    for name, value in found.items():
        if not quiet and PER_CENT.fullmatch(name) and 0 < value <= 1:
            note(f"{name}={value:g} means {value:g} per cent; for a probability of {value:g}: {name}={100 * value:g}")
    return found


def from_toml(path: Path) -> dict[str, Any]:
    """Read a settings file, and check its names and types."""
    try:
        values = renamed(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(f"--config must name a TOML file; {path} cannot be read: {reason}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} must be TOML, such as epochs = 20; it is not: {error}.") from error
    for name, value in values.items():
        kind = KINDS[choose(f"setting in {path}", name, KINDS)]
        try:
            values[name] = reader(kind)(value)
        except Wrong:
            raise InputError(f"{name} in {path} must be {CALLED[kind]}; got {value!r}.") from None
    return values


def to_toml(values: Mapping[str, Any]) -> str:
    """Write values as TOML; None is left out, and tables come last."""
    plain = {name: value for name, value in values.items() if value is not None}
    lines = [f"{name} = {_text(v)}" for name, v in plain.items() if not isinstance(v, Mapping)]
    for name, table in plain.items():
        if isinstance(table, Mapping) and table:
            lines += ["", f"[{name}]", *(f"{key} = {_text(v)}" for key, v in table.items())]
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    # JSON escapes strings as TOML does, except for the delete character.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
