"""Records: frozen dataclasses that go to JSON and come back, validated once, where they are read.

The annotations of a record say what must hold: types, ranges (`Annotated[float, Range(0, 1)]`), known names
(`Annotated[str, OneOf(NAMES)]`), records inside records. Every number must be finite. What ties several fields together
is in the record's `check`.
"""

import json
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from augury.core.errors import InputError, RunError, choose

R = TypeVar("R", bound="Record")
T = TypeVar("T")
Read = Callable[[Any], Any]  # from a JSON value to a checked one

LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Range:
    """A rule: a number from `low` to `high`."""

    low: int
    high: int | float = LARGEST

    def __call__(self, value: int | float) -> str | None:
        """Return what is required, if violated."""
        if self.low <= value <= self.high:
            return None
        return f"at least {self.low:g}" if self.high == LARGEST else f"from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class OneOf:
    """A rule: one of some names."""

    names: tuple[str, ...]

    def __call__(self, value: str) -> str | None:
        """Return what is required, if violated."""
        return None if value in self.names else f"one of {', '.join(map(repr, self.names))}"


def printable(text: str) -> str | None:
    """Return what is required of a name, if violated: it goes into pages, code and file names."""
    return None if text.isprintable() else "printable text"


Name = Annotated[str, printable]
Share = Annotated[float, Range(0, 1)]
Count = Annotated[int, Range(0)]
Positive = Annotated[int, Range(1)]
NotNegative = Annotated[float, Range(0)]


class Wrong(Exception):
    """A value that its annotation does not allow, and where it is."""

    def __init__(self, what: str, value: Any, place: str = "") -> None:
        super().__init__(what)
        self.what, self.value, self.place = what, value, place

    def inside(self, place: str) -> "Wrong":
        """Return the same error, its place seen from outside."""
        return Wrong(self.what, self.value, place + self.place)


class Record:
    """A frozen dataclass that goes to JSON and comes back; an unknown key is an error."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain dictionaries, lists, strings and numbers."""
        return asdict(self)  # type: ignore[call-overload]

    @classmethod
    def from_json(cls: type[R], values: Any) -> R:
        """Rebuild a record from what `to_json` gave."""
        if not isinstance(values, Mapping):
            raise InputError(f"{cls.__name__} must be a JSON object; got {values!r:.60}.")
        known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
        for name in values:
            if name not in known:
                raise InputError(
                    f"{cls.__name__} has no field {name!r}; it has {', '.join(sorted(known))}. "
                    f"Was the file written by another version of Augury?"
                )
        for name, f in known.items():
            if name not in values and f.default is MISSING and f.default_factory is MISSING:
                raise InputError(f"{cls.__name__} needs the field {name!r}.")
        readers = _readers(cls)  # type: ignore[arg-type]
        made = cls(**{name: parse(f"{cls.__name__}.{name}", readers[name], v) for name, v in values.items()})
        made.check()
        return made

    def check(self) -> None:
        """Raise an `InputError` if fields contradict each other; called when a record is read."""

    def dumps(self, indent: int | None = 2) -> str:
        """Return the record as indented JSON text; None for the shortest."""
        separators = (",", ":") if indent is None else None
        return json.dumps(self.to_json(), indent=indent, separators=separators, allow_nan=False) + "\n"


class Settings(Record):
    """A record that users fill in by name."""

    @classmethod
    def of(cls: type[R], **given: Any) -> R:
        """Return the defaults with what was given in their place; an unknown name is an error."""
        for name in given:
            choose("setting", name, [f.name for f in fields(cls)])  # type: ignore[arg-type]
        return cls(**given)

    def at_least(self, **lowest: int) -> None:
        """Raise unless every setting has its lowest value or more."""
        for name, low in lowest.items():
            if not getattr(self, name) >= low:
                raise InputError(f"{name} must be at least {low}; got {getattr(self, name)}.")


def parse(name: str, read: Read, value: Any) -> Any:
    """Return a JSON value checked by a reader."""
    try:
        return read(value)
    except Wrong as wrong:
        raise InputError(f"{name}{wrong.place} must be {wrong.what}; got {wrong.value!r:.60}.") from None


@cache
def _readers(cls: type[Record]) -> dict[str, Read]:
    return {name: reader(hint) for name, hint in get_type_hints(cls, include_extras=True).items()}


PLAIN: dict[Any, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: (int | float, "a finite number"),
    str: (str, "a text"),
    types.NoneType: (types.NoneType, "null"),
}


@cache
def reader(hint: Any) -> Read:
    """Return what checks a JSON value against an annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: value
    if hint in PLAIN:
        return _plain(hint)
    if origin is Annotated:
        return _ruled(reader(arguments[0]), arguments[1:])
    if origin in (Union, types.UnionType):
        return _either([reader(a) for a in arguments])
    if origin in (list, tuple, Sequence):
        return _many(reader(arguments[0]), tuple if origin is tuple else list)
    if origin in (dict, Mapping):
        return _named(reader(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Record):
        return lambda value: value if isinstance(value, hint) else hint.from_json(value)
    raise TypeError(f"a field of a record cannot be {hint}")


def _plain(kind: Any) -> Read:
    types_, what = PLAIN[kind]
    number = kind in (int, float)

    def read(value: Any) -> Any:
        if not isinstance(value, types_) or (number and isinstance(value, bool)):
            raise Wrong(what, value)
        if number and not -LARGEST <= value <= LARGEST:
            raise Wrong(what, value)
        return float(value) if kind is float else value

    return read


def _ruled(inner: Read, rules: Sequence[Callable[[Any], str | None]]) -> Read:
    def read(value: Any) -> Any:
        value = inner(value)
        for rule in rules:
            if (what := rule(value)) is not None:
                raise Wrong(what, value)
        return value

    return read


def _either(options: Sequence[Read]) -> Read:
    def read(value: Any) -> Any:
        complaints: list[Exception] = []
        for option in options:
            try:
                return option(value)
            except (Wrong, InputError) as error:
                complaints.append(error)
        if value is not None and len(options) == 2:  # "X or null": what X says is what helps
            raise complaints[0]
        raise Wrong(" or ".join(e.what for e in complaints if isinstance(e, Wrong)), value)

    return read


def _many(inner: Read, make: Callable[[list[Any]], Any]) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise Wrong("a list", value)
        out = []
        for k, item in enumerate(value):
            try:
                out.append(inner(item))
            except Wrong as wrong:
                raise wrong.inside(f"[{k}]") from None
        return make(out)

    return read


def _named(inner: Read) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Wrong("an object", value)
        out = {}
        for name, item in value.items():
            try:
                out[name] = inner(item)
            except Wrong as wrong:
                raise wrong.inside(f".{name}") from None
        return out

    return read


def loads(text: str) -> Any:
    """Parse JSON; NaN, infinity and numbers beyond float64 are refused."""
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    value = float(text)
    if not -LARGEST <= value <= LARGEST:
        raise ValueError(f"numbers must be finite; got {text:.20}.")
    return value


def read_json(path: Path, make: Callable[[Any], T]) -> T:
    """Read and convert a JSON file; anything wrong with it is a `RunError`."""
    try:
        return make(loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        why = str(error).rstrip(".")
        raise RunError(
            f"{path} cannot be read ({why}). It is damaged, or was written by another version of Augury."
        ) from error
