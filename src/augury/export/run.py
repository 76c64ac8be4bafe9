"""What a run folder says of itself, read without torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from augury.core.errors import InputError, RunError
from augury.export.policy import Policy, policy_of
from augury.records import Invariance
from augury.training.run_folder import BASELINE, CONFIG, INVARIANCE, MODEL


@dataclass(frozen=True)
class RunFacts:
    """What a finished run left, the weights aside."""

    path: Path
    """Its folder."""
    invariance: Invariance
    """What was learned."""
    config: dict[str, Any]
    """All settings, and facts about the data under "data"."""
    recipe: dict[str, Any]
    """How the model is built."""
    baseline: Invariance | None
    """What the plain network beside it gave, where there is one."""


def read_run(path: str | Path) -> RunFacts:
    """Read the records of a finished run."""
    folder = Path(path).expanduser()
    if not (folder / CONFIG).is_file():
        raise InputError(
            f"a run must be a folder that augury learn wrote, with a {CONFIG} in it; got '{path}'. "
            f"Runs stand in runs/ unless you chose another place (--run)."
        )
    if not (folder / INVARIANCE).is_file():
        raise InputError(
            f"the run in {path} has not ended: there is no {INVARIANCE}. Let it end (augury learn ... --resume)."
        )
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        invariance = Invariance.from_json(json.loads((folder / INVARIANCE).read_text(encoding="utf-8")))
        beside = folder / BASELINE / INVARIANCE
        baseline = Invariance.from_json(json.loads(beside.read_text("utf-8"))) if beside.is_file() else None
        return RunFacts(folder, invariance, config, _recipe(folder / MODEL), baseline)
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"the run in {path} is damaged ({error}).") from error


def _recipe(path: Path) -> dict[str, Any]:
    """Return the recipe in a safetensors header: eight bytes of length, then JSON."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(min(length, 100_000_000)))
    recipe: dict[str, Any] = json.loads(header.get("__metadata__", {}).get("recipe", "{}"))
    return recipe


def policy_of_run(path: str | Path) -> Policy:
    """Return the policy that a run learned."""
    run = read_run(path)
    kind, shape = run.recipe.get("kind"), run.recipe.get("input_shape")
    if kind is None or shape is None:
        raise RunError(f"{run.path / MODEL} does not say what it was trained on. Was it written by Augury?")
    if run.invariance.widths and run.recipe.get("generators") is None:
        raise InputError(
            f"the run in {path} used a transformation of your own, which no other library knows. "
            f"Export the model instead (--to torch)."
        )
    return policy_of(run.invariance, kind, shape, run.recipe.get("sampling", "independent"))
