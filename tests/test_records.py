"""Records are validated once, where they are read; whatever a file says, nothing but our errors comes of it."""

import json
from dataclasses import dataclass, field
from typing import Annotated

import pytest

from augury.records.record import OneOf, Range, Record, loads
from refusal import refused


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
        ({"name": "a", "by_name": {"k": [1, None]}}, r"Outer.by_name.k\[1\] must be a finite number; got None"),
    ],
    ids=str,
)
def test_what_an_annotation_does_not_allow_is_refused(values, says):
    refused(says, Outer.from_json, values)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -1e999}', "{"])
def test_json_without_finite_numbers_is_refused(text):
    with pytest.raises(ValueError):
        loads(text)
