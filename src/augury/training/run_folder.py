"""A run's folder: the one place that names, writes and reads its files. Loads no torch.

config.json            the settings                         learn, amortize, adapt
metrics.jsonl          a line per epoch                     learn, amortize
checkpoint/            where a killed run resumes           learn, amortize
model.safetensors      the model                            learn, amortize, adapt
invariance.json  adaptation.json  audit.json                results of learn, adapt, audit
views/                 pictures for the report              learn, audit
command.json  report.html                                   written by the command line
baseline/              the plain network, for comparison    learn
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from augury.core.errors import InputError, RunError
from augury.core.files import is_part, write_text
from augury.records.exhibits import AUDIT, BESIDE, EXHIBITS, VIEWS, WORST, Answers, Exhibits, Gallery
from augury.records.record import Count, Record, loads, parse, read_json, reader
from augury.records.results import Adaptation, Audit, Invariance
from augury.records.saved import SavedModel, read_saved

try:
    import fcntl
except ImportError:  # Windows: folders are not locked
    fcntl = None  # type: ignore[assignment]

CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint"
MODEL, INVARIANCE, ADAPTATION, REPORT = ("model.safetensors", "invariance.json", "adaptation.json", "report.html")
BASELINE, COMMAND = "baseline", "command.json"
EXTRACTOR_0_1 = "extractor.safetensors"  # what `amortize` of version 0.1 called its model
OURS = (
    CONFIG, METRICS, CHECKPOINT, MODEL, INVARIANCE, ADAPTATION, REPORT, BASELINE, COMMAND, VIEWS, EXTRACTOR_0_1,
)  # fmt: skip
"""What a run writes; overwriting it deletes nothing else."""
FILES: dict[type[Record], str] = {Invariance: INVARIANCE, Adaptation: ADAPTATION, Audit: AUDIT}
"""Where each record of what was found goes."""


@dataclass(frozen=True)
class RunFolder:
    """Writes the files of one run."""

    path: Path

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
            raise RunError(f"cannot write {self.path / METRICS}: {error.strerror}. Is the disk full?") from error

    def rows(self) -> list[dict[str, Any]]:
        """Return all lines of metrics, without an incomplete last one."""
        path = self.path / METRICS
        try:
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            lines = [loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
            return [_row(f"line {k + 1}", values) for k, values in enumerate(lines)]
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"the metrics in {path} cannot be read: {error}") from error

    def write_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the lines of metrics anew: a continued run begins with those of its checkpoint."""
        write_text(self.path / METRICS, "".join(json.dumps(row) + "\n" for row in rows))

    def write(self, record: Invariance | Adaptation | Audit) -> None:
        """Write what was found."""
        write_text(self.path / FILES[type(record)], record.dumps())


def open_run(path: Path, config: Mapping[str, Any], *, overwrite: bool = False, resume: bool = False) -> RunFolder:
    """Make a run's folder, or open an existing one; errors come before training starts."""
    check_run(path, overwrite=overwrite, resume=resume)
    config = json.loads(json.dumps(config))
    if holds_something(path):
        if resume:
            _check_same(path, config)
            _sweep(path)
            return RunFolder(path)
        _empty(path)
    _sweep(path)
    write_text(path / CONFIG, json.dumps(config, indent=2) + "\n")
    return RunFolder(path)


def check_run(path: Path, *, overwrite: bool, resume: bool) -> None:
    """Raise if a run may not start in this folder; nothing is changed."""
    if overwrite and resume:
        raise InputError("overwrite and resume exclude each other; give one of them.")
    if not holds_something(path) or resume:
        return
    if not overwrite:
        raise InputError(
            f"the run folder {path} already exists. Overwrite it (--overwrite), continue it (--resume), "
            f"or choose another (--run)."
        )
    if not (path / CONFIG).is_file():
        raise InputError(f"{path} is not a run folder (it has no {CONFIG}), so it is not overwritten. Choose another.")


def holds_something(path: Path) -> bool:
    """Say whether there is anything at a path, an empty folder and what a kill left of a write aside."""
    try:
        return path.is_file() or (path.is_dir() and any(not is_part(p.name) for p in path.iterdir()))
    except OSError as error:
        raise RunError(f"cannot read the run folder {path}: {error.strerror}. Choose another (--run).") from error


@contextmanager
def locked(path: Path | None) -> Iterator[None]:
    """Keep other processes out of a run's folder for the block; a killed process leaves no lock behind."""
    if path is None or path.is_file() or fcntl is None:
        yield
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
        opened = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}. Choose a folder that you may write to.") from error
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        raise RunError(
            f"another process is at work in the run folder {path}. Wait for it, or choose another (--run)."
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(opened)


def folder_for(run: Path | None, name: str, *, overwrite: bool, resume: bool, several: bool = False) -> Path:
    """Return where a run may start or go on: the folder that was named, or a new one; several have theirs inside."""
    if run is None and resume:
        raise InputError("--resume must know which run to continue. Name its folder: --run runs/NAME.")
    if run is None:
        return new_folder(name)
    if not several:
        check_run(run, overwrite=overwrite, resume=resume)
    return run


def new_folder(name: str) -> Path:
    """Return a folder in runs/ that does not exist yet."""
    first = Path("runs") / name
    numbered = (first.with_name(f"{name}-{k}") for k in range(2, 1_000_000))
    return first if not holds_something(first) else next(p for p in numbered if not holds_something(p))


def _sweep(path: Path) -> None:
    """Delete what kills left of writes."""
    for place in (path, path / CHECKPOINT, path / VIEWS):
        for left in place.glob(".*.part"):
            if is_part(left.name):
                left.unlink(missing_ok=True)


def _empty(path: Path) -> None:
    for name in reversed(OURS):  # the settings last: without them, what a kill leaves would not count as a run
        target = path / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


def _check_same(path: Path, config: Mapping[str, Any]) -> None:
    try:
        before = loads((path / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
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
    return [d for key in keys for d in _differences(before.get(key), after.get(key), f"{name}.{key}".lstrip("."))]


def model_file(path: Path) -> Path:
    """Return the file of a saved model: the one that is named, or that of a run's folder."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise InputError(f"no model at {path}: there is no such file or folder. Give the folder of a run.")
    for name in (MODEL, EXTRACTOR_0_1):
        if (path / name).is_file():
            return path / name
    if (path / AUDIT).is_file():
        raise InputError(f"{path} holds an audit, which has no model. Give the run that was audited.")
    if (path / CONFIG).is_file():
        raise InputError(
            f"the run in {path} has not ended: there is no {MODEL}. Let it end (the same command with --resume)."
        )
    raise InputError(f"{path} holds no run and no trained model. Give the folder of a run that has ended.")


@dataclass(frozen=True)
class _Data(Record):
    """The facts about the data in a config."""

    source: str = "unknown data"
    train: Count = 0
    test: Count = 0
    targets: str = ""
    input_shape: list[Count] = field(default_factory=list)
    fingerprint: str = ""


@dataclass(frozen=True)
class _Asked(Record):
    """The settings that a reader of the folder relies on; all others are shown as they are."""

    method: str = ""
    model: str | None = None
    epochs: Count = 0
    data: _Data = field(default_factory=_Data)


OBJECT, NUMBERS = reader(dict[str, Any]), reader(dict[str, float | None])
COMMAND_LINE = reader(dict[str, str | float | None])


def _row(name: str, values: Any) -> dict[str, Any]:
    """Check a line of metrics: an epoch, widths by name, and numbers."""
    row: dict[str, Any] = parse(name, OBJECT, values)
    parse(f"{name}.widths", reader(dict[str, float]), row.get("widths", {}))
    parse(f"{name}.epoch", reader(Count), row.get("epoch"))
    parse(name, NUMBERS, {key: value for key, value in row.items() if key != "widths"})
    return row


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """What a folder holds."""

    path: Path
    command: dict[str, Any]  # how it was started, and where

    @property
    def name(self) -> str:
        """What it is called: its folder."""
        return self.path.resolve().name or str(self.path)

    @property
    def machine(self) -> dict[str, Any]:
        """Where it was started: all that is known beside the command itself."""
        return {key: value for key, value in self.command.items() if key != "command"}

    def saved(self) -> SavedModel:
        """Read the header of the model's file."""
        return read_saved(model_file(self.path))


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(Found):
    """A run of `augury learn`, whether it has ended or not."""

    config: dict[str, Any]
    rows: list[dict[str, Any]]  # a line of metrics for each epoch
    invariance: Invariance | None  # what it learned; None for a run that has not ended
    exhibits: Exhibits | None  # what its report shows
    beside: Answers | None  # the baseline's predictions for the same inputs
    baseline: "Run | None"  # the plain network trained for comparison


@dataclass(frozen=True, eq=False, kw_only=True)
class Pretrained(Found):
    """A run of `augury amortize`, whether it has ended or not."""

    config: dict[str, Any]
    rows: list[dict[str, Any]]  # a line of metrics for each epoch
    extractor: SavedModel | None  # what is known of the extractor; None for a run that has not ended


@dataclass(frozen=True, eq=False, kw_only=True)
class Audited(Found):
    """What `augury audit` left."""

    audit: Audit
    worst: Gallery | None  # the worst inputs: input, view, and the saliency maps of both


@dataclass(frozen=True, eq=False, kw_only=True)
class Adapted(Found):
    """What `augury adapt` left."""

    adaptation: Adaptation


def read_run(path: str | Path) -> Found:
    """Read and check a folder of any kind."""
    path = Path(path).expanduser()
    if not path.is_dir():
        raise InputError(
            f"a run must be the folder that augury learn, amortize, adapt or audit left; got '{path}', "
            f"and there is no such folder. Runs are in runs/ by default (--run)."
        )
    command = _maybe(path / COMMAND, lambda values: parse("the command", COMMAND_LINE, values)) or {}
    if (path / ADAPTATION).is_file():
        found = read_json(path / ADAPTATION, Adaptation.from_json)
        return Adapted(path=path, command=command, adaptation=found)
    if (path / AUDIT).is_file():
        audit = read_json(path / AUDIT, Audit.from_json)
        worst = _maybe(path / VIEWS / WORST, Gallery.from_json)
        if worst is not None and (worst.rows, worst.columns) not in ((len(audit.worst), n) for n in (2, 4)):
            raise RunError(f"{path / VIEWS / WORST} must show 2 or 4 frames for each of the worst inputs.")
        return Audited(path=path, command=command, audit=audit, worst=worst)
    if not (path / CONFIG).is_file():
        raise InputError(
            f"{path} holds no run: it has none of {CONFIG}, {AUDIT} and {ADAPTATION}. "
            f"Give the folder that augury learn, amortize, adapt or audit has written."
        )
    config, rows = read_json(path / CONFIG, _config), RunFolder(path).rows()
    if "descriptors" in config:
        ended = (path / MODEL).is_file() or (path / EXTRACTOR_0_1).is_file()
        saved = read_saved(model_file(path)) if ended else None
        return Pretrained(path=path, command=command, config=config, rows=rows, extractor=saved)
    return Run(
        path=path,
        command=command,
        config=config,
        rows=rows,
        invariance=_maybe(path / INVARIANCE, Invariance.from_json),
        exhibits=_maybe(path / VIEWS / EXHIBITS, Exhibits.from_json),
        beside=_maybe(path / VIEWS / BESIDE, Answers.from_json),
        baseline=_baseline(path / BASELINE),
    )


def _baseline(path: Path) -> Run | None:
    found = read_run(path) if (path / CONFIG).is_file() else None
    return found if isinstance(found, Run) else None


def _config(values: Any) -> dict[str, Any]:
    """Return settings, those that others rely on checked."""
    if not isinstance(values, dict):
        raise ValueError("settings must be a JSON object.")
    known = {f.name: values[f.name] for f in fields(_Asked) if f.name in values}
    checked = _Asked.from_json(known).to_json()
    return {**values, **{name: checked[name] for name in known}}


def _maybe(path: Path, make: Any) -> Any:
    return read_json(path, make) if path.is_file() else None
