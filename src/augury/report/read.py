"""What stands in a folder: a learned run, an audit, or an adaptation. Files only; nothing is trusted blindly."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from augury.core.errors import InputError, RunError
from augury.records.exhibits import AUDIT, BESIDE, EXHIBITS, VIEWS, WORST, Answers, Exhibits, Gallery
from augury.records.results import Audit, Invariance
from augury.training.run_folder import BASELINE, COMMAND, CONFIG, INVARIANCE, RunFolder

ADAPTATION = "adaptation.json"
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Run:
    """A run of `augury learn`, whether it has ended or not."""

    path: Path
    """Its folder."""
    config: dict[str, Any]
    """What it was asked."""
    rows: list[dict[str, Any]]
    """A line of metrics for each epoch."""
    invariance: Invariance | None
    """What it learned; None for a run that has not ended."""
    exhibits: Exhibits | None
    """What it left to be looked at."""
    beside: Answers | None
    """What its baseline says of the same inputs."""
    baseline: "Run | None"
    """The plain network that was trained beside it."""
    command: dict[str, Any]
    """How it was started, and where."""

    @property
    def name(self) -> str:
        """What it is called: its folder."""
        return _name(self.path)


@dataclass(frozen=True, eq=False)
class Audited:
    """What `augury audit` left."""

    path: Path
    """Its folder."""
    audit: Audit
    """The record."""
    worst: Gallery | None
    """The worst inputs: input, view, and the saliency maps of both."""
    command: dict[str, Any]
    """How it was started, and where."""

    @property
    def name(self) -> str:
        """What it is called: its folder."""
        return _name(self.path)


@dataclass(frozen=True, eq=False)
class Adapted:
    """What `augury adapt` left."""

    path: Path
    """Its folder."""
    values: dict[str, Any]
    """The record as JSON: `augury.records.results.Adaptation`."""
    command: dict[str, Any]
    """How it was started, and where."""

    @property
    def name(self) -> str:
        """What it is called: its folder."""
        return _name(self.path)


Found = Run | Audited | Adapted


def read(path: Path) -> Found:
    """Read whatever was left in a folder."""
    if not path.is_dir():
        raise InputError(
            f"a run must be the folder that augury learn, audit or adapt left; got '{path}', "
            f"and there is no such folder."
        )
    if (path / ADAPTATION).is_file():
        return Adapted(path, _json(path / ADAPTATION, dict), _command(path))
    if (path / AUDIT).is_file():
        audit = _json(path / AUDIT, Audit.from_json)
        return Audited(path, audit, _maybe(path / VIEWS / WORST, Gallery.from_json), _command(path))
    if (path / CONFIG).is_file():
        return _run(path)
    raise InputError(
        f"{path} holds no run: it has none of {CONFIG}, {AUDIT} and {ADAPTATION}. "
        f"Give the folder that augury learn, audit or adapt has written."
    )


def _run(path: Path) -> Run:
    baseline = path / BASELINE
    try:
        rows = RunFolder(path).rows()
    except (OSError, ValueError) as error:
        raise RunError(f"the metrics in {path} cannot be read: {error}.") from error
    return Run(
        path=path,
        config=_json(path / CONFIG, dict),
        rows=rows,
        invariance=_maybe(path / INVARIANCE, Invariance.from_json),
        exhibits=_maybe(path / VIEWS / EXHIBITS, Exhibits.from_json),
        beside=_maybe(path / VIEWS / BESIDE, Answers.from_json),
        baseline=_run(baseline) if (baseline / CONFIG).is_file() else None,
        command=_command(path),
    )


def _command(path: Path) -> dict[str, Any]:
    return _maybe(path / COMMAND, dict) or {}


def _maybe(path: Path, make: Callable[[Any], T]) -> T | None:
    return _json(path, make) if path.is_file() else None


def _json(path: Path, make: Callable[[Any], T]) -> T:
    try:
        return make(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunError(
            f"{path} cannot be read: {error}. It is damaged, or was written by another version of Augury."
        ) from error


def _name(path: Path) -> str:
    return path.resolve().name or str(path)
