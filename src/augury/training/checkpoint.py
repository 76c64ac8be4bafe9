"""Checkpoints: everything that changes during a run, as tensors and plain data with a checksum.

    checkpoint/epoch-000011.safetensors
    checkpoint/epoch-000012.safetensors               after 12 epochs
    checkpoint/epoch-000012-step-000003.safetensors   after three steps of the next, where a signal stopped the run

A checkpoint is one file, moved into place when it is complete. The last two are kept: a kill at any time leaves one,
and where the last does not match its checksum a run resumes from the one before.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from augury.core.errors import RunError
from augury.core.files import written_whole
from augury.core.rng import Stream
from augury.records.record import loads
from augury.records.saved import CHECKSUM
from augury.training.learner import Findings, Learner

STATE, STATE_0_1 = "state", "state.json"
"""Key of the plain data in a file's metadata; their file in version 0.1, which had no checksums."""
KEPT = 2  # checkpoints in a folder


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a safetensors file, whole or not at all."""
    apart = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    try:
        with written_whole(path) as temporary:
            save_file(apart, temporary, metadata)
            _in_order(temporary)
    except (OSError, SafetensorError) as error:
        raise RunError(f"cannot write {path}: {error}. Is the disk full?") from error


def _in_order(path: Path) -> None:
    """Sort the metadata of a file: safetensors writes them in random order, and equal models must be equal files."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header.get("__metadata__", {}).items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        if header["__metadata__"] and len(text) <= size:
            file.seek(8)
            file.write(text.ljust(size))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a safetensors file and its metadata."""
    with safe_open(path, framework="pt") as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata() or {}  # noqa: SIM118


def digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the checksum of a record and of tensors: names, types, shapes and bytes."""
    found = sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        found.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def save_checkpoint(
    folder: Path, epoch: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], step: int = 0
) -> None:
    """Write a checkpoint, and remove those before the last two."""
    text = json.dumps({"epoch": epoch, "step": step, **facts}, allow_nan=False)
    name = f"epoch-{epoch:06d}" + (f"-step-{step:06d}" if step else "")
    save_tensors(folder / f"{name}.safetensors", tensors, {STATE: text, CHECKSUM: digest(text, tensors)})
    remove_old(folder)
    (folder / STATE_0_1).unlink(missing_ok=True)


def remove_old(folder: Path) -> None:
    """Remove the checkpoints before the last two."""
    for old in checkpoints(folder)[KEPT:]:
        old.unlink(missing_ok=True)


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, the last one first."""
    return sorted(folder.glob("epoch-*.safetensors"), key=lambda path: path.stem, reverse=True)


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any], list[str]]:
    """Return the last checkpoint that matches its checksum, and what is wrong with those after it."""
    damaged: list[str] = []
    for path in checkpoints(folder):
        try:
            return *_read(path), damaged
        except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
            damaged.append(f"{path.name} is damaged ({str(error).rstrip('.')})")
    if not damaged:
        raise RunError(f"no checkpoint in {folder}. Start a new run.")
    raise RunError(f"no checkpoint in {folder} can be used: {'; '.join(damaged)}. Start a new run (--overwrite).")


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors, metadata = load_tensors(path)
    if not metadata and (path.parent / STATE_0_1).is_file():
        return tensors, loads((path.parent / STATE_0_1).read_text(encoding="utf-8"))
    if metadata[CHECKSUM] != digest(metadata[STATE], tensors):
        raise ValueError("its checksum differs")
    return tensors, loads(metadata[STATE])


@dataclass
class Best:
    """The epoch with the highest log evidence so far."""

    epoch: int
    log_evidence: float
    tensors: dict[str, Tensor]  # the learner's state after it


@dataclass
class RunState:
    """The progress of a run."""

    rngs: Mapping[str, Stream]
    epoch: int = 0  # how many epochs are done
    step: int = 0  # how many steps of the next epoch are done
    total: float = 0.0  # their loss, summed over examples
    seconds: float = 0.0  # training time so far
    rows: list[dict[str, Any]] = field(default_factory=list)  # a line of metrics for each epoch
    best: Best | None = None  # the best epoch, if the method has an evidence
    findings: Findings | None = None  # what was learned, once only the weights are trained on


def learned(learner: Learner) -> dict[str, Tensor]:
    """Copy the modules and the extra state of a learner."""
    tensors = {
        f"modules/{name}/{key}": tensor
        for name, module in learner.modules().items()
        for key, tensor in module.state_dict().items()
    }
    tensors |= {f"extra/{key}": tensor for key, tensor in learner.extra_state().items()}
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def restore_learned(learner: Learner, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `learned` copied."""
    try:
        for name, module in learner.modules().items():
            module.load_state_dict(under(tensors, f"modules/{name}/"))
        learner.load_extra_state(under(tensors, "extra/"))
    except (RuntimeError, KeyError) as error:
        raise RunError(f"the saved state does not fit this network: {error}") from error


def under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose name begins with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def take(learner: Learner, state: RunState) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return all that a checkpoint needs, except for the epoch and the step."""
    tensors = learned(learner) | {f"rng/{name}": rng.get_state() for name, rng in state.rngs.items()}
    tensors["rng_global"] = torch.get_rng_state()
    facts: dict[str, Any] = {"seconds": state.seconds, "total": state.total, "rows": state.rows}
    facts |= {"optimizers": {}, "best": None}
    if state.findings is not None:
        facts["findings"] = state.findings.to_json()
    for name, optimizer in learner.optimizers().items():
        values = optimizer.state_dict()
        plain: dict[str, dict[str, Any]] = {}
        for index, entry in values["state"].items():
            tensors |= {f"optim/{name}/{index}/{key}": v for key, v in entry.items() if isinstance(v, Tensor)}
            plain[str(index)] = {key: v for key, v in entry.items() if not isinstance(v, Tensor)}
        facts["optimizers"][name] = {"groups": values["param_groups"], "state": plain}
    if state.best is not None:
        facts["best"] = {"epoch": state.best.epoch, "log_evidence": state.best.log_evidence}
        tensors |= {f"best/{name}": tensor for name, tensor in state.best.tensors.items()}
    return tensors, facts


def put_back(learner: Learner, state: RunState, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Restore a new learner and state from a checkpoint."""
    restore_learned(learner, tensors)
    try:
        for name, rng in state.rngs.items():
            rng.set_state(tensors[f"rng/{name}"])
        torch.set_rng_state(tensors["rng_global"])
        for name, optimizer in learner.optimizers().items():
            saved = facts["optimizers"][name]
            entries = {int(index): dict(entry) for index, entry in saved["state"].items()}
            for index, entry in entries.items():
                entry |= under(tensors, f"optim/{name}/{index}/")
            optimizer.load_state_dict({"state": entries, "param_groups": saved["groups"]})
        state.epoch, state.seconds = facts["epoch"], facts["seconds"]
        state.step, state.total = facts.get("step", 0), facts.get("total", 0.0)
        state.rows = facts.get("rows", [])
        if facts["best"] is not None:
            state.best = Best(**facts["best"], tensors=under(tensors, "best/"))
        if "findings" in facts:
            state.findings = Findings.from_json(facts["findings"])
            learner.finish()
    except (RuntimeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"the checkpoint does not fit this method: {error!r:.200}. Start a new run.") from error
