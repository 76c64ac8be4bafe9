"""Inputs for readers, built by hypothesis from the structure that each format allows and a little more."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from augury.cli.settings import KINDS, NUMBERS, WORDS, merge, to_toml
from augury.data.load import load
from augury.records.results import VERDICTS
from fuzzing import labelled, outcome, read_policy

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBER = st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.integers(-2, 40), st.floats(-3, 3))
PLAIN = st.one_of(NUMBER, TEXT, st.booleans())
JSON = st.recursive(
    st.none() | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from([
    "lila",
    "plain",
    "mlp5",
    "rotation",
    "flip_x",
    "C4",
    "blur",
    "independent",
    "grid",
    "kron",
    "cpu",
])


def of_kind(kind: Any) -> st.SearchStrategy[Any]:
    right = {
        int: st.integers(-1, 100), float: st.floats(), str: NAMES, bool: st.booleans(),
        WORDS: st.lists(NAMES, max_size=3), NUMBERS: st.dictionaries(NAMES, NUMBER, max_size=3),
    }[kind]  # fmt: skip
    return st.one_of(right, right, right, right, PLAIN)


CONFIG = st.fixed_dictionaries(
    {"data": TEXT}, optional={n: of_kind(k) for n, k in KINDS.items() if n not in ("policy", "data")}
)
WIDTH = st.fixed_dictionaries(
    {"value": NUMBER, "unit": st.sampled_from(["deg", "px", "factor", "", "%"])},
    optional={"low": NUMBER, "high": NUMBER, "verdict": st.sampled_from(VERDICTS), "planted": JSON},
)
POLICY = st.fixed_dictionaries({
    "widths": st.dictionaries(st.one_of(NAMES, TEXT), WIDTH, max_size=4),
    "kind": st.sampled_from(["image", "image", "signal", "points", "coordinates", "features"]),
    "input_shape": st.lists(st.integers(0, 40), min_size=1, max_size=4),
    "sampling": NAMES,
    "learned": st.just({}) | st.dictionaries(TEXT, TEXT, max_size=3),
    "format": st.sampled_from([1, 1, 1, 1, 2, None]),
})
ARRAY = arrays.arrays(
    st.one_of(arrays.scalar_dtypes(), st.sampled_from([np.dtype("f4"), np.dtype("u1"), np.dtype("i8")])),
    st.one_of(arrays.array_shapes(min_dims=0, max_dims=4, max_side=7), st.just((7,)), st.just((7, 6, 6))),
)
NPZ = st.dictionaries(st.sampled_from(["x", "y", "x_train", "y_train", "classes", "images"]), ARRAY, max_size=4)
ROWS = st.lists(
    st.lists(st.one_of(st.sampled_from([f"images/{k}.png" for k in range(4)]), TEXT), max_size=3), max_size=6
)


def config(values: dict[str, Any], folder: Path) -> None:
    (folder / "run.toml").write_text(to_toml(values), encoding="utf-8")
    merge({}, folder / "run.toml").as_toml()


def policies(values: Any, folder: Path) -> None:
    (folder / "policy.json").write_text(json.dumps(values))
    read_policy(folder)


def npz(values: dict[str, Any], folder: Path) -> None:
    np.savez(folder / "a.npz", **values)
    load(folder / "a.npz")


def labels(rows: list[list[str]], folder: Path) -> None:
    if not (folder / "images").exists():
        labelled(folder)
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    (folder / "labels.csv").write_text(text.getvalue(), encoding="utf-8")
    load(folder)


STRUCTURES: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any, Path], None]]] = {
    "config by hypothesis": (CONFIG, config),
    "policy by hypothesis": (POLICY, policies),
    "npz by hypothesis": (NPZ, npz),
    "labels by hypothesis": (ROWS, labels),
}


def examples(name: str, k: int, n: int, place: Path) -> Iterator[str]:
    """Try n examples that follow from a seed, and yield what is found."""
    strategy, read = STRUCTURES[name]
    folder = place / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found: list[str] = []

    @seed(k)
    @settings(
        max_examples=n, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def check(values: Any) -> None:
        said = outcome(lambda: read(values, folder))
        if said is not None:
            found.append(f"{said} for {values!r:.200}")

    check()
    yield from found
