"""Export of a trained model: a program of `torch.export` that runs without Augury, its weights, and a card.

f_hat(x) = 1/S sum_s f(g(x, eps_s; eta)),   eps_s as in evaluation mode, any number of inputs
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from augury.core.errors import InputError, RunError, first_line
from augury.core.files import write_text, written_whole
from augury.export.card import card, exportable
from augury.records.saved import CUSTOM
from augury.training.run_folder import MODEL
from augury.training.saved_model import load_model
from augury.transforms.base import Transform


def program_of(model: nn.Module, input_shape: Sequence[int]) -> torch.export.ExportedProgram:
    """Trace a trained model into a program."""
    batch = torch.export.Dim("batch", min=1)
    example = torch.zeros(2, *input_shape)
    try:
        with torch.no_grad():
            return torch.export.export(model.cpu().eval(), (example,), dynamic_shapes=({0: batch},), strict=False)
    except Exception as error:  # torch.export raises many exceptions for a user's module
        raise RunError(
            f"torch.export cannot follow this model ({first_line(error)}). Its weights are exported all the same; a "
            f"network or transformation of your own must avoid control flow that depends on the values of its inputs."
        ) from error


def save_program(path: Path, program: torch.export.ExportedProgram) -> None:
    """Write a program to a .pt2 file, whole or not at all."""
    with written_whole(path) as temporary:
        renamed = temporary.with_suffix(".pt2")  # torch requires this suffix
        try:
            torch.export.save(program, renamed)
            renamed.replace(temporary)
        finally:
            renamed.unlink(missing_ok=True)


PROGRAM, CARD = "model.pt2", "MODEL_CARD.md"


@dataclass(frozen=True)
class ExportedModel:
    """What was written."""

    program: Path | None  # the torch.export program; None where torch could not follow the model
    weights: Path
    card: Path
    reason: str = ""  # why there is no program


def export_model(
    run: str | Path, folder: str | Path, net: nn.Module | None = None, transform: Transform | None = None
) -> ExportedModel:
    """Write a run's model as a program, as safetensors and with a card."""
    facts, target = exportable(run), Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"a model is exported to a folder; {target} is a file. Choose another place (--out).")
    saved = facts.saved()
    if saved.network == CUSTOM and net is None:
        raise InputError(
            f"the run in {run} trained a network of your own, whose code is not in the folder. Export it in Python: "
            f"augury.export.program.export_model(run, folder, net)."
        )
    model = load_model(facts.path, net, transform)
    with written_whole(target / MODEL) as temporary:
        shutil.copyfile(facts.path / MODEL, temporary)
    write_text(target / CARD, card(facts))
    try:
        save_program(target / PROGRAM, program_of(model, saved.input_shape))
    except RunError as error:
        return ExportedModel(None, target / MODEL, target / CARD, str(error))
    return ExportedModel(target / PROGRAM, target / MODEL, target / CARD)
