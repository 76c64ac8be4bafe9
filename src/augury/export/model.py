"""Export of a trained model: a program, its weights, and a card that says what they are."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from augury.core.errors import InputError, RunError
from augury.core.files import write_text, written_whole
from augury.export.card import card
from augury.export.program import program_of, save_program
from augury.export.run import read_run
from augury.training.run_folder import MODEL
from augury.training.saved_model import load_model
from augury.transforms.base import Transform

PROGRAM, CARD = "model.pt2", "MODEL_CARD.md"


@dataclass(frozen=True)
class ExportedModel:
    """What was written."""

    program: Path | None
    """The torch.export program; None where torch could not follow the model."""
    weights: Path
    """The safetensors file, with its recipe."""
    card: Path
    """The model card."""
    reason: str = ""
    """Why there is no program."""


def export_model(
    run: str | Path, folder: str | Path, net: nn.Module | None = None, transform: Transform | None = None
) -> ExportedModel:
    """Write a run's model as a program, as safetensors and with a card."""
    facts, target = read_run(run), Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(
            f"a model is exported to a folder; {target} is a file. Choose another place (--out)."
        )
    if facts.recipe.get("model") == "custom" and net is None:
        raise InputError(
            f"the run in {run} trained a network of your own, whose code is not in the folder. Export it in Python: "
            f"augury.export.model.export_model(run, folder, net)."
        )
    model = load_model(facts.path, net, transform)
    with written_whole(target / MODEL) as temporary:
        shutil.copyfile(facts.path / MODEL, temporary)
    write_text(target / CARD, card(facts))
    try:
        save_program(target / PROGRAM, program_of(model, facts.recipe["input_shape"]))
    except RunError as error:
        return ExportedModel(None, target / MODEL, target / CARD, str(error))
    return ExportedModel(target / PROGRAM, target / MODEL, target / CARD)
