"""Records are validated once, where they are read; whatever a file says, nothing but our errors comes of it."""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest

from augury.core.errors import AuguryError
from augury.export.policy import Policy
from augury.export.targets import TARGETS
from augury.records.record import OneOf, Range, Record, loads
from augury.report.page import render
from augury.training.run_folder import read_run
from export_doubles import COLORS, FINITE, GEOMETRY, policy
from refusal import refused
from report_doubles import adapted_folder, audit_folder, learned_run


@dataclass(frozen=True)
class Inner(Record):
    share: Annotated[float, Range(0, 1)]


@dataclass(frozen=True)
class Outer(Record):
    name: Annotated[str, OneOf(("a", "b"))]
    n: int = 1
    x: float | None = None
    sure: bool = False
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    by_name: dict[str, list[float]] = field(default_factory=dict)


def test_a_record_comes_back_with_its_types():
    one = Outer("a", 3, 2.0, True, Inner(0.5), (Inner(0.0),), {"k": [1.0, 2.0]})
    assert Outer.from_json(json.loads(one.dumps())) == one
    assert isinstance(Outer.from_json({"name": "a", "x": 3}).x, float)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([], "must be a JSON object"),
        ({}, "needs the field 'name'"),
        ({"name": "a", "m": 1}, "has no field 'm'"),
        ({"name": "c"}, "Outer.name must be one of 'a', 'b'; got 'c'"),
        ({"name": "a", "n": 1.5}, "Outer.n must be a whole number; got 1.5"),
        ({"name": "a", "n": True}, "Outer.n must be a whole number"),
        ({"name": "a", "x": "3"}, "Outer.x must be a finite number"),
        ({"name": "a", "x": float("nan")}, "Outer.x must be a finite number; got nan"),
        ({"name": "a", "x": 10**400}, "Outer.x must be a finite number"),
        ({"name": "a", "sure": 1}, "Outer.sure must be true or false"),
        ({"name": "a", "inner": {"share": 2}}, "Inner.share must be from 0 to 1; got 2"),
        ({"name": "a", "many": [{"share": 1}, 3]}, "Inner must be a JSON object; got 3"),
        (
            {"name": "a", "by_name": {"k": [1, None]}},
            r"Outer.by_name.k\[1\] must be a finite number; got None",
        ),
    ],
    ids=str,
)
def test_what_an_annotation_does_not_allow_is_refused(values, says):
    refused(says, Outer.from_json, values)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -1e999}', "{"])
def test_json_without_finite_numbers_is_refused(text):
    with pytest.raises(ValueError):
        loads(text)


NONSENSE: tuple[Any, ...] = (
    None, True, -1, 0, 1, 3, 0.5, -2.5, 1e300, -1e300, 10**400, 2**70, float("nan"), float("inf"), "", "x", '"""\n',
    "\x00", "\\", "{{ 7 * 7 }}", [], [1], [[]], {}, {"x": 1},
)  # fmt: skip


def mutated(values: Any, rng: random.Random) -> Any:
    """Change one thing somewhere: another value, a key less, an entry more or less."""
    if isinstance(values, dict) and values and rng.random() < 0.9:
        key = rng.choice(list(values))
        if rng.random() < 0.1:
            return {k: v for k, v in values.items() if k != key}
        return {**values, key: mutated(values[key], rng)}
    if isinstance(values, list) and values and rng.random() < 0.9:
        k, step = rng.randrange(len(values)), rng.random()
        middle = [] if step < 0.1 else [values[k]] * 2 if step < 0.2 else [mutated(values[k], rng)]
        return [*values[:k], *middle, *values[k + 1 :]]
    if isinstance(values, int | float) and not isinstance(values, bool) and rng.random() < 0.5:
        return rng.choice([values * -1, values * 1000, values / 1000, int(values), float(values)])
    return rng.choice(NONSENSE)


def damage(text: str, rng: random.Random) -> str:
    if rng.random() < 0.1:  # bytes
        k = rng.randrange(len(text))
        return text[:k] + rng.choice(["", "}", "\x00", "9", '"', "é"]) + text[k + 1 :]
    if "}\n{" not in text:
        return json.dumps(mutated(json.loads(text), rng))
    lines = text.splitlines()
    k = rng.randrange(len(lines))
    lines[k] = json.dumps(mutated(json.loads(lines[k]), rng))
    return "\n".join(lines) + "\n"


ROUNDS = 25


@pytest.mark.parametrize("make", [learned_run, audit_folder, adapted_folder], ids=lambda make: make.__name__)
def test_a_damaged_run_folder_gives_a_page_or_our_error(make, tmp_path):
    folder, rng = make(tmp_path / "a"), random.Random(0)
    files = {p: p.read_text() for p in sorted(Path(folder).rglob("*.json*"))}
    pages = 0
    for _ in range(ROUNDS):
        path = rng.choice(list(files))
        path.write_text(damage(files[path], rng), encoding="utf-8")
        try:
            html = render([read_run(folder)])
            render([read_run(folder), read_run(folder)])
            pages += 1
            assert not any(bad in html for bad in ("nan", "NaN", "Infinity", ">inf"))
        except AuguryError as error:
            assert len(str(error)) > 20
        path.write_text(files[path])
    assert 0 < pages < ROUNDS


def test_a_damaged_policy_gives_code_that_compiles_or_our_error(tmp_path):
    whole, rng = policy(GEOMETRY, COLORS, FINITE).dumps(), random.Random(1)
    read = 0
    for _ in range(2 * ROUNDS):
        (tmp_path / "p.json").write_text(damage(whole, rng), encoding="utf-8")
        try:
            found = Policy.read(tmp_path / "p.json")
            found.widths_for((3, 30, 30))
            for name in ("torchvision", "kornia", "albumentations"):
                compile(TARGETS[name].write(found).text, name, "exec")
            read += 1
        except AuguryError as error:
            assert len(str(error)) > 20
    assert read > ROUNDS / 10
