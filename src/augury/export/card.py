"""A model card: what was learned, on what, how well, and where it ends. Plain Markdown, free of torch."""

import json

from augury import __version__
from augury.exhibits import EXHIBITS, VIEWS
from augury.export.run import RunFacts
from augury.records import Invariance, Width

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
