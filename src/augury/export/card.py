"""Which runs can be exported, the policy of a run, and its model card: plain Markdown. Loads no torch."""

from pathlib import Path

from augury import __version__
from augury.core.errors import InputError
from augury.export.policy import Policy, in_unit, policy_of
from augury.records.results import Adaptation, Invariance, Width
from augury.records.saved import SavedModel
from augury.training.run_folder import INVARIANCE, Adapted, Audited, Pretrained, Run, read_run

USE = """
```python
import torch

model = torch.export.load("model.pt2").module()  # needs PyTorch only
outputs = model(x)  # float32 [{shape}], any number of inputs B
```

or, with Augury, as a module that can be trained further:

```python
import augury

model = augury.load_model("model.safetensors")
```
"""

LIMITS = """
- The widths say how far inputs can be transformed without changing their labels *in the training data*. On other data:
  `augury audit model.safetensors DATA`.
- The intervals contain what the data and the noise of the views leave open, with the output layer refitted at every
  width; they do not contain the differences that another seed's weights or refitting the layers below would make.
- The program averages the network over {S} fixed views of every input, so it costs {S} passes of the network, and it is
  invariant only as far as such an average is.
- Views are interpolated; outside the image is black.
"""

LIMITS_PLAIN = """
- This is the network alone: no average over transformations is taken, and no invariance is claimed.
"""


def card(run: Run | Adapted) -> str:
    """Return the card of a run's model."""
    saved = run.saved()
    title, found = _learned(run, saved) if isinstance(run, Run) else _adapted(run.adaptation)
    orbit = "orbit" in saved.kind
    parts = [
        f"# {title}\n\n{_what(saved)}",
        *found[:3],
        f"## How to use it\n{USE.format(shape=', '.join(map(str, ['B', *saved.input_shape])))}",
        f"## Limits\n{LIMITS.format(S=saved.samples_eval) if orbit else LIMITS_PLAIN}",
        found[3],
    ]
    return "\n".join(parts)


def _learned(run: Run, saved: SavedModel) -> tuple[str, list[str]]:
    found = run.invariance
    assert found is not None
    shown = ("method", "epochs", "batch", "samples", "samples_eval", "optimizer", "rate", "seed")
    lines = [f"- {name}: {run.config[name]}" for name in shown if name in run.config]
    data = run.config.get("data", {})
    origin = (
        f"{found.data}: {data.get('train')} training and {data.get('test')} test examples. The test examples were not "
        f"used for training. Fingerprint of the training data: `{data.get('fingerprint')}`.\n"
    )
    return f"{found.model}, trained by {found.method}", [
        f"## What was learned\n\n{_widths(found.widths)}",
        f"## On what\n\n{origin}",
        f"## How well\n\n{_scores(found, None if run.baseline is None else run.baseline.invariance)}",
        "## How it was trained\n\n" + "\n".join([*lines, f"- exported by Augury {__version__}"]) + "\n",
    ]


def _adapted(found: Adaptation) -> tuple[str, list[str]]:
    rows = [f"| {name} | {value:.3g} |" for name, value in found.descriptor.items()]
    score = f"{100 * found.score:.2f} % right" if found.score_name == "accuracy" else f"R^2 {found.score:.4g}"
    lines = [f"extractor: {found.extractor}", f"descriptor chosen by: {found.criterion}"]
    return "A linear head on an extractor, adapted to a task", [
        "## What was learned\n\n"
        + "\n".join([f"{found.words}.\n", "| group | 1 invariant, 0 sensitive |", "|---|---|", *rows])
        + "\n",
        f"## On what\n\n{found.data}: {found.N} training examples.\n",
        f"## How well\n\n{score} ({found.scored_on}).\n",
        "## How it was trained\n\n" + "".join(f"- {line}\n" for line in [*lines, f"exported by Augury {__version__}"]),
    ]


def _what(saved: SavedModel) -> str:
    orbit = f"averaged over {saved.samples_eval} views of its input" if "orbit" in saved.kind else "as it is"
    lines = [f"A network ({saved.network}) for {saved.data_kind} data of shape {saved.input_shape}, {orbit}."]
    if saved.class_names:
        lines.append(f"Its {saved.n_outputs} outputs are the logits of: {', '.join(saved.class_names)}.")
    else:
        lines.append(f"It has {saved.n_outputs} outputs.")
    if saved.data_kind == "image":
        lines.append("Pixels are floats from 0 to 1.")
    return " ".join(lines) + "\n"


def _widths(widths: dict[str, Width]) -> str:
    if not widths:
        return "No transformations: this method uses none.\n"
    rows = []
    for name, w in widths.items():
        high = "no upper end" if w.high is None else in_unit(w.high, w.unit)
        interval = "-" if w.low is None else f"{in_unit(w.low, w.unit)} to {high}"
        planted = "-" if w.planted is None else in_unit(w.planted, w.unit)
        rows.append(f"| {name} | {in_unit(w.value, w.unit)} | {interval} | {w.verdict} | {planted} |")
    head = "| transformation | up to | 95 % interval | verdict | planted truth |\n|---|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _scores(invariance: Invariance, baseline: Invariance | None) -> str:
    runs = [("this model", invariance)] + ([("the plain network", baseline)] if baseline else [])
    evidence = ["-" if i.log_evidence is None else f"{i.log_evidence:.1f}" for _, i in runs]
    rows = [f"| {n} | {_score(i)} | {e} | {i.seconds:.0f} |" for (n, i), e in zip(runs, evidence, strict=True)]
    return "| | test score | log evidence | seconds |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _score(i: Invariance) -> str:
    if i.test_accuracy is not None:
        return f"{100 * i.test_accuracy:.2f} % right"
    return "no test set" if i.test_error is None else f"error {i.test_error:.4g} (root mean square)"


def exportable(path: str | Path) -> Run | Adapted:
    """Read a run whose model can be exported, or raise an error."""
    found = read_run(path)
    if isinstance(found, Pretrained):
        raise InputError(
            f"{path} holds an extractor, which has no single model and no widths: adapt it to a task first "
            f"(augury adapt {path} DATA --run RUN) and export that."
        )
    if isinstance(found, Audited):
        raise InputError(f"{path} holds an audit, which has no model. Give the run that was audited.")
    if isinstance(found, Run) and found.invariance is None:
        raise InputError(
            f"the run in {path} has not ended: there is no {INVARIANCE}. Let it end (augury learn ... --resume)."
        )
    assert isinstance(found, Run | Adapted)
    return found


def policy_of_run(path: str | Path) -> Policy:
    """Return the policy that a run learned."""
    run = exportable(path)
    if isinstance(run, Adapted):
        raise InputError(
            f"{path} holds an adaptation: what it learned is a descriptor ({run.adaptation.words}), not widths, so "
            f"there is no policy. Export its model (--to torch)."
        )
    saved = run.saved()
    assert run.invariance is not None
    if run.invariance.widths and saved.generators is None:
        raise InputError(
            f"the run in {path} used a transformation of your own, which no other library knows. "
            f"Export the model instead (--to torch)."
        )
    return policy_of(run.invariance, saved.data_kind, saved.input_shape, saved.sampling)
