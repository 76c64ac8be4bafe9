"""A run's folder: what it was asked, what happened, what came of it.

config.json  metrics.jsonl  checkpoint/  model.safetensors  invariance.json  views/  command.json  report.html

and in baseline/ the same of the plain network trained beside it, where one was asked for.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from augury.core.errors import InputError, RunError
from augury.core.files import write_text
from augury.records.exhibits import VIEWS
from augury.records.results import Invariance

CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint"
MODEL, INVARIANCE, REPORT = "model.safetensors", "invariance.json", "report.html"
BASELINE, COMMAND = "baseline", "command.json"
OURS = (CONFIG, METRICS, CHECKPOINT, MODEL, INVARIANCE, REPORT, BASELINE, COMMAND, VIEWS)
"""What a run writes, and therefore all that overwriting it may delete."""


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path
    """The folder."""

    @property
    def checkpoint(self) -> Path:
        """Where its checkpoint lies."""
        return self.path / CHECKPOINT

    @property
    def model(self) -> Path:
        """Where the trained model goes."""
        return self.path / MODEL

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Append one line of metrics."""
        try:
            with (self.path / METRICS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, allow_nan=False) + "\n")
        except OSError as error:
            raise RunError(
                f"cannot write {self.path / METRICS}: {error.strerror}. Is the disk full?"
            ) from error

    def rows(self) -> list[dict[str, Any]]:
        """Return all lines of metrics; a last line that was cut short by a kill is left out."""
        path = self.path / METRICS
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def keep_rows(self, n: int) -> list[dict[str, Any]]:
        """Cut the metrics back to their first n lines: a continued run writes the later ones again."""
        rows = self.rows()[:n]
        if len(rows) < n:
            raise RunError(
                f"{self.path / METRICS} holds {len(rows)} epochs and the checkpoint {n}. Start the run anew."
            )
        write_text(self.path / METRICS, "".join(json.dumps(row) + "\n" for row in rows))
        return rows

    def write_invariance(self, invariance: Invariance) -> None:
        """Write what was learned."""
        write_text(self.path / INVARIANCE, invariance.dumps())


def open_run(
    path: Path, config: Mapping[str, Any], *, overwrite: bool = False, resume: bool = False
) -> RunFolder:
    """Make a run's folder, or open one again; every complaint comes before training starts."""
    check_run(path, overwrite=overwrite, resume=resume)
    config = json.loads(json.dumps(config))
    if holds_something(path):
        if resume:
            _check_same(path, config)
            return RunFolder(path)
        _empty(path)
    write_text(path / CONFIG, json.dumps(config, indent=2) + "\n")
    write_text(path / METRICS, "")
    return RunFolder(path)


def check_run(path: Path, *, overwrite: bool, resume: bool) -> None:
    """Raise if a run may not start in this folder; nothing is changed."""
    if overwrite and resume:
        raise InputError("overwrite and resume exclude each other; give one of them.")
    if holds_something(path) and not (overwrite or resume):
        raise InputError(
            f"the run folder {path} already exists. Overwrite it (--overwrite), continue it (--resume), "
            f"or choose another (--run)."
        )


def holds_something(path: Path) -> bool:
    """Say whether anything stands at a path, an empty folder aside."""
    try:
        return path.is_file() or (path.is_dir() and any(path.iterdir()))
    except OSError as error:
        raise RunError(
            f"cannot read the run folder {path}: {error.strerror}. Choose another (--run)."
        ) from error


def new_folder(name: str) -> Path:
    """Return a folder in runs/ that does not stand yet."""
    first = Path("runs") / name
    numbered = (first.with_name(f"{name}-{k}") for k in range(2, 1_000_000))
    return first if not holds_something(first) else next(p for p in numbered if not holds_something(p))


def _empty(path: Path) -> None:
    if not (path / CONFIG).is_file():
        raise InputError(
            f"{path} is not a run folder (it has no {CONFIG}), so it is not overwritten. Choose another."
        )
    for name in OURS:
        target = path / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


def _check_same(path: Path, config: Mapping[str, Any]) -> None:
    try:
        before = json.loads((path / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} holds no run to continue: {CONFIG} cannot be read ({error}).") from error
    for name, was, now in _differences(before, config):
        raise InputError(
            f"to continue {path}, {name} must be as it was: {was!r}; got {now!r}. "
            f"Give the same settings, or start another run (--run)."
        )


def _differences(before: Any, after: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return [] if before == after else [(name, before, after)]
    keys = dict.fromkeys([*before, *after])
    return [
        d for key in keys for d in _differences(before.get(key), after.get(key), f"{name}.{key}".lstrip("."))
    ]
