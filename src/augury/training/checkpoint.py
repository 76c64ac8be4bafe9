"""Checkpoints: tensors in safetensors, everything else in JSON, written whole or not at all.

    checkpoint/epoch-000012.safetensors
    checkpoint/state.json               names the file above; moved into place last

Until the new `state.json` stands, the old one and its tensors do: a kill at any moment leaves a whole one.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from augury.core.errors import RunError
from augury.core.files import write_text, written_whole

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
            f"no checkpoint in {folder}: {Path(error.filename).name} is missing. Start the run anew."
        ) from error
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise RunError(f"the checkpoint in {folder} is damaged ({error}). Start the run anew.") from error


def has_checkpoint(folder: Path) -> bool:
    """Say whether a checkpoint stands in a folder."""
    return (folder / STATE).is_file()
