"""Checkpoints: everything that changes during a run, as tensors and plain data.

    checkpoint/epoch-000012.safetensors
    checkpoint/state.json               names the file above; moved into place last

Until the new `state.json` is in place, the old one and its tensors are kept: a kill at any time leaves a complete one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from augury.core.errors import RunError
from augury.core.files import write_text, written_whole
from augury.training.learner import Learner

STATE = "state.json"


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a safetensors file, whole or not at all."""
    apart = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    try:
        with written_whole(path) as temporary:
            save_file(apart, temporary, metadata)
    except (OSError, SafetensorError) as error:
        raise RunError(f"cannot write {path}: {error}. Is the disk full?") from error


def save_checkpoint(
    folder: Path, epoch: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]
) -> None:
    """Write a checkpoint and then remove the one before it."""
    current = folder / f"epoch-{epoch:06d}.safetensors"
    save_tensors(current, tensors)
    write_text(
        folder / STATE,
        json.dumps({"epoch": epoch, "tensors": current.name, **facts}, indent=1, allow_nan=False),
    )
    for old in folder.glob("epoch-*.safetensors"):
        if old != current:
            old.unlink(missing_ok=True)


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the checkpoint that `save_checkpoint` wrote."""
    try:
        facts = json.loads((folder / STATE).read_text(encoding="utf-8"))
        return load_file(folder / facts["tensors"]), facts
    except FileNotFoundError as error:
        raise RunError(
            f"no checkpoint in {folder}: {Path(error.filename).name} is missing. Start a new run."
        ) from error
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise RunError(f"the checkpoint in {folder} is damaged ({error}). Start a new run.") from error


def has_checkpoint(folder: Path) -> bool:
    """Say whether a folder holds a checkpoint."""
    return (folder / STATE).is_file()


@dataclass
class Best:
    """The epoch with the highest log evidence so far."""

    epoch: int
    """Which one, from 1."""
    log_evidence: float
    """Its log evidence."""
    tensors: dict[str, Tensor]
    """The learner's state after it."""


@dataclass
class RunState:
    """The progress of a run."""

    rngs: dict[str, torch.Generator]
    """The random streams by name."""
    epoch: int = 0
    """How many epochs are done."""
    seconds: float = 0.0
    """Training time so far."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """A line of metrics for each epoch."""
    best: Best | None = None
    """The best epoch, if the method has an evidence."""


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
    """Return all that a checkpoint needs; the epoch and the lines of metrics are kept elsewhere."""
    tensors = learned(learner) | {f"rng/{name}": rng.get_state() for name, rng in state.rngs.items()}
    tensors["rng_global"] = torch.get_rng_state()
    facts: dict[str, Any] = {"seconds": state.seconds, "optimizers": {}, "best": None}
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


def put_back(
    learner: Learner, state: RunState, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]
) -> None:
    """Restore a new learner and state from a checkpoint."""
    restore_learned(learner, tensors)
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
    if facts["best"] is not None:
        state.best = Best(**facts["best"], tensors=under(tensors, "best/"))
