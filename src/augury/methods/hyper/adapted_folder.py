"""What an adaptation leaves in its run folder, and how to get the model back.

config.json  adaptation.json  model.safetensors, and from the command line command.json  report.html
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import nn

from augury.core.errors import InputError, RunError
from augury.core.files import write_text
from augury.core.rng import generator
from augury.models.networks import ENCODERS, build_encoder
from augury.records.results import Adaptation, Record
from augury.training.checkpoint import save_tensors
from augury.training.run_folder import COMMAND, CONFIG, MODEL, REPORT, holds_something

ADAPTATION = "adaptation.json"
OURS = (CONFIG, ADAPTATION, MODEL, COMMAND, REPORT)
"""What an adaptation writes, and therefore all that overwriting it may delete."""


@dataclass(frozen=True)
class Plan(Record):
    """How to build an adapted model whose weights are at hand."""

    encoder: str
    """A key of `ENCODERS`, or "custom"."""
    input_shape: list[int]
    """Shape of one input."""
    features: int
    """Numbers that the head sees."""
    n_outputs: int
    """Classes, or dimensions of the target."""


def check_folder(path: Path, *, overwrite: bool) -> Path:
    """Raise if an adaptation may not be written here; nothing is changed."""
    if not holds_something(path):
        return path
    if not overwrite:
        raise InputError(
            f"the run folder {path} already exists. Overwrite it (--overwrite) or choose another (--run)."
        )
    if not (path / ADAPTATION).is_file():
        raise InputError(f"{path} holds no {ADAPTATION}, so it is not overwritten. Choose another folder.")
    return path


def save_adapted(path: Path, model: nn.Module, adaptation: Adaptation, config: dict, plan: Plan) -> None:
    """Write settings, record and model; what stood there is replaced."""
    for name in OURS:
        (path / name).unlink(missing_ok=True)
    write_text(path / CONFIG, json.dumps(config, indent=2) + "\n")
    save_tensors(path / MODEL, model.state_dict(), {"plan": json.dumps(plan.to_json())})
    write_text(path / ADAPTATION, adaptation.dumps())


def load_adaptation(path: Path | str) -> Adaptation:
    """Read what was learned."""
    file = Path(path) / ADAPTATION
    try:
        return Adaptation.from_json(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise InputError(f"no adaptation at {file}. Make one: augury adapt EXTRACTOR DATA.") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{file} is damaged ({error}). Adapt anew.") from error


def load_adapted(path: Path | str, encoder: nn.Module | None = None) -> nn.Module:
    """Build an adapted model from its run folder; the extractor is not needed."""
    file = Path(path) / MODEL
    try:
        with safe_open(file, framework="pt") as opened:
            plan = Plan.from_json(json.loads((opened.metadata() or {})["plan"]))
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise InputError(f"no adapted model at {file}. Make one: augury adapt EXTRACTOR DATA.") from error
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise RunError(f"{file} is not an adapted model, or it is damaged ({error}). Adapt anew.") from error
    if encoder is None:
        if plan.encoder not in ENCODERS:
            raise InputError("this model was made with an encoder of your own: load_adapted(path, encoder).")
        encoder = build_encoder(plan.encoder, plan.input_shape, generator(0))
    model = nn.Sequential(encoder, nn.Linear(plan.features, plan.n_outputs))
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"the encoder does not fit the one that was saved: {error}") from error
    return model.eval()


def plan_of(encoder: str, input_shape: Sequence[int], features: int, n_outputs: int) -> Plan:
    """Return how to build a model."""
    return Plan(encoder, list(input_shape), features, n_outputs)
