"""What `augury learn` is asked, from flags and from a TOML file: one table of names, checked once. Loads no torch.

Every name is either about reading the data, a field of `LearnConfig`, or about the run itself. Flags win over the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from augury.cli import toml
from augury.config.learn import DEFAULT_METHOD, LearnConfig, method_name
from augury.core.errors import InputError, choose
from augury.export.policy import Policy
from augury.models.networks import NETWORKS

READING = {
    "variant": str, "subset": int, "test": str, "test_fraction": float, "size": int, "task": str, "skip_bad": bool,
}  # fmt: skip
"""How the data are read, and of which type each is."""
OWN = {"data": str, "policy": str, "run": str, "baseline": bool, "tensorboard": str}
"""What else can be asked."""
NUMBERS, WORDS = Mapping, list
SETTINGS = {f.name: f.type for f in fields(LearnConfig) if f.type in (int, float, str)} | {
    "model": str, "generators": WORDS, "widths": NUMBERS,
}  # fmt: skip
"""Fields of `LearnConfig`, and of which type each is."""
KINDS: dict[str, Any] = READING | OWN | SETTINGS
CALLED = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    WORDS: "a list of texts",
    NUMBERS: "a table of numbers",
}


@dataclass(frozen=True)
class Asked:
    """All that was asked of a run."""

    data: str
    """The data."""
    reading: dict[str, Any]
    """How to read them: keywords of `load`."""
    method: str
    """The method."""
    settings: dict[str, Any]
    """Fields of `LearnConfig` that were given, the network's name among them."""
    policy: Policy | None
    """Where generators and widths come from, if not from the settings."""
    run: Path | None
    """The run's folder."""
    baseline: bool
    """Train the plain network too."""
    tensorboard: Path | None
    """Where TensorBoard's files go."""
    values: dict[str, Any]
    """Everything given, by name."""

    @property
    def config(self) -> LearnConfig:
        """All settings, as far as they are known before the data are."""
        return LearnConfig.for_method(self.method, **self.settings)

    def as_toml(self) -> str:
        """Return everything as TOML, defaults filled in."""
        config = {name: value for name, value in self.config.to_json().items() if name in SETTINGS}
        given = {name: self.values.get(name) for name in ("data", *READING, "policy", "run", "tensorboard")}
        return toml.dumps({**given, "baseline": self.baseline, **config})


def asked(flags: Mapping[str, Any], file: Path | None = None) -> Asked:
    """Put together what flags and a file ask for, and check it."""
    values = {} if file is None else from_file(file)
    for name, value in flags.items():
        if value is not None:
            values[name] = {**values.get(name, {}), **value} if name == "widths" else value
    if "data" not in values:
        raise InputError("DATA must be given: a name (see augury data list), a folder of images, or an .npz.")
    policy = _policy(values)
    method = method_name(values.get("method", "augmented" if policy else DEFAULT_METHOD))
    settings = {name: value for name, value in values.items() if name in SETTINGS and name != "method"}
    if "model" in settings:
        choose("model", settings["model"], NETWORKS)
    if "generators" in settings:
        settings["generators"] = tuple(settings["generators"])
    config = LearnConfig.for_method(method, **settings)
    reading = {name: values[name] for name in READING if name in values} | {"seed": config.seed}
    folders = {name: Path(values[name]) if name in values else None for name in ("run", "tensorboard")}
    baseline = values.get("baseline", True) and method != "plain"
    return Asked(
        values["data"],
        reading,
        method,
        settings,
        policy,
        folders["run"],
        baseline,
        folders["tensorboard"],
        values,
    )


def _policy(values: Mapping[str, Any]) -> Policy | None:
    if "policy" not in values:
        return None
    for name in ("generators", "widths"):
        if values.get(name):
            raise InputError(
                f"give --policy or {name}, not both: a policy says which generators act, and how far."
            )
    return Policy.read(values["policy"])


def from_file(path: Path) -> dict[str, Any]:
    """Read a TOML file and check its names and types."""
    values = toml.read(path)
    for name, value in values.items():
        kind = KINDS[choose(f"setting in {path}", name, KINDS)]
        if not _fits(value, kind):
            raise InputError(f"{name} in {path} must be {CALLED[kind]}; got {value!r}.")
    return {name: _typed(value, KINDS[name]) for name, value in values.items()}


def _typed(value: Any, kind: Any) -> Any:
    """Return whole numbers as floats where a float is meant."""
    if kind is NUMBERS:
        return {name: float(number) for name, number in value.items()}
    return float(value) if kind is float else value


def _fits(value: Any, kind: Any) -> bool:
    if kind in (int, float):
        return isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    if kind is NUMBERS:
        return isinstance(value, dict) and all(_fits(v, float) for v in value.values())
    if kind is WORDS:
        return isinstance(value, list) and all(isinstance(v, str) for v in value)
    return isinstance(value, kind)


def pair(text: str) -> tuple[str, str]:
    """Read name=value."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InputError(f"a setting must read name=value, such as rotation=30; got '{text}'.")
    return name.strip(), value.strip()


def setting(text: str) -> tuple[str, Any]:
    """Read name=value as the field of `LearnConfig` that it names."""
    name, value = pair(text)
    simple = {
        n: kind for n, kind in SETTINGS.items() if kind in (int, float, str) and n not in ("method", "model")
    }
    kind = simple[choose("setting", name, simple)]
    try:
        return name, kind(value)
    except ValueError as error:
        raise InputError(f"{name} must be {CALLED[kind]}; got '{value}'.") from error


def width(text: str) -> tuple[str, float]:
    """Read name=value as a width."""
    name, value = pair(text)
    try:
        return name, float(value)
    except ValueError as error:
        raise InputError(f"{name} must be a number; got '{value}'.") from error
