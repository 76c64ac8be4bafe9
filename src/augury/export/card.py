"""A model card: what was learned, on what, how well, and where it ends. Plain Markdown, free of torch.

What a run folder says of itself, read without torch.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from augury import __version__
from augury.core.errors import InputError, RunError
from augury.export.policy import Policy, policy_of
from augury.records.exhibits import EXHIBITS, VIEWS
from augury.records.results import Invariance, Width
from augury.training.run_folder import BASELINE, CONFIG, INVARIANCE, MODEL

USE = """
```python
import torch

model = torch.export.load("model.pt2").module()  # needs PyTorch only
outputs = model(x)  # float32 {shape}, any number of inputs B
```

or, with Augury, as a module that can be trained further:

```python
from augury.training.saved_model import load_model

model = load_model("model.safetensors")
```
"""

LIMITS = """
- The widths say how far inputs may move before their labels change *in the training data*. On other data ask again:
  `augury audit model.pt2 DATA`.
- The intervals come from the curvature of the evidence at the trained weights: how sharply these weights fix a width,
  not how another training run would differ.
- The program averages the network over {S} fixed views of every input, so it costs {S} passes of the network, and it is
  invariant only as far as such an average is.
- Views are interpolated, and what moves in from outside an image is black.
"""

LIMITS_PLAIN = """
- This is the network alone: no average over transformations is taken, and no invariance is claimed.
"""


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


def card(run: RunFacts) -> str:
    """Return the card of a run's model."""
    parts = [
        f"# {run.invariance.model}, trained by {run.invariance.method}\n\n{_what(run)}",
        f"## What was learned\n\n{_widths(run.invariance.widths)}",
        f"## On what\n\n{_data(run)}",
        f"## How well\n\n{_scores(run.invariance, run.baseline)}",
        f"## How to use it\n{USE.format(shape=_batch(run))}",
        f"## Limits\n{LIMITS.format(S=run.recipe.get('samples_eval')) if run.recipe.get('orbit') else LIMITS_PLAIN}",
        f"## How it was trained\n\n{_settings(run)}",
    ]
    return "\n".join(parts)


def _batch(run: RunFacts) -> str:
    return f"[B, {', '.join(map(str, run.recipe['input_shape']))}]"


def _what(run: RunFacts) -> str:
    orbit = (
        f"averaged over {run.recipe['samples_eval']} views of its input"
        if run.recipe.get("orbit")
        else "as it is"
    )
    kind = run.recipe.get("kind", "input")
    lines = [
        f"A network ({run.invariance.model}) for {kind} data of shape {run.recipe['input_shape']}, {orbit}."
    ]
    path = run.path / VIEWS / EXHIBITS
    shown = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if shown.get("task") == "classification" and shown.get("class_names"):
        names = shown["class_names"]
        lines.append(f"Its {len(names)} outputs are the logits of: {', '.join(names)}.")
    else:
        lines.append(f"It has {run.recipe.get('n_outputs')} outputs.")
    if kind == "image":
        lines.append("Pixels are floats from 0 to 1.")
    return " ".join(lines) + "\n"


def _widths(widths: dict[str, Width]) -> str:
    if not widths:
        return "No transformations: the labels were not asked about any.\n"
    rows = [
        f"| {name} | {_number(w.value, w.unit)} | {_interval(w)} | {w.verdict} | "
        f"{'-' if w.planted is None else _number(w.planted, w.unit)} |"
        for name, w in widths.items()
    ]
    head = "| transformation | up to | 95 % interval | verdict | planted truth |\n|---|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _number(value: float, unit: str) -> str:
    return f"x {value:.3g}" if unit == "factor" else f"{value:.4g} {unit}".strip()


def _interval(w: Width) -> str:
    if w.low is None:
        return "-"
    high = "no upper end" if w.high is None else _number(w.high, w.unit)
    return f"{_number(w.low, w.unit)} to {high}"


def _data(run: RunFacts) -> str:
    data = run.config.get("data", {})
    return (
        f"{run.invariance.data}: {data.get('train')} training and {data.get('test')} test examples. "
        f"The test examples were scored once and steered nothing. Fingerprint of the training data: "
        f"`{data.get('fingerprint')}`.\n"
    )


def _scores(invariance: Invariance, baseline: Invariance | None) -> str:
    runs = [("this model", invariance)] + ([("the plain network", baseline)] if baseline else [])
    rows = [f"| {name} | {_score(i)} | {_evidence(i)} | {i.seconds:.0f} |" for name, i in runs]
    return "| | test score | log evidence | seconds |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _score(i: Invariance) -> str:
    if i.test_accuracy is not None:
        return f"{100 * i.test_accuracy:.2f} % right"
    return "no test set" if i.test_error is None else f"error {i.test_error:.4g} (root mean square)"


def _evidence(i: Invariance) -> str:
    return "-" if i.log_evidence is None else f"{i.log_evidence:.1f}"


def _settings(run: RunFacts) -> str:
    shown = ("method", "epochs", "batch", "samples", "samples_eval", "optimizer", "rate", "seed")
    lines = [f"- {name}: {run.config[name]}" for name in shown if name in run.config]
    return "\n".join([*lines, f"- exported by Augury {__version__}"]) + "\n"


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
