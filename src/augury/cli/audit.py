"""`augury audit`: everything that can be refused is refused before torch is loaded."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from augury.auditing.verdict import FIGURES, beyond_limits
from augury.cli import options as o
from augury.cli.console import interruptible, leave_report, note, out, percent, print_json, read_data, step_bar, table
from augury.cli.processes import is_first, launched, sharing_errors
from augury.cli.settings import pairs, widths
from augury.config.audit import AuditConfig
from augury.core.errors import InputError, choose
from augury.core.files import check_writable
from augury.models.networks import NETWORKS
from augury.records.exhibits import AUDIT
from augury.records.results import Audit, Measure, Scores
from augury.training.run_folder import holds_something, new_folder

BEYOND_LIMIT = 3  # exit code if a limit is exceeded

HELP = f"""
Is a model's invariance genuine, or does it hold on its training data only?

Measures how far logits (LI), predictions (DI, agreement) and saliency maps
(SI) of inputs and of their views differ, what interpolation alone would
cost, and whether it still holds on other data. An audit writes audit.json,
views/ and report.html to its folder.

\b
augury audit runs/a mnist5k -g C4                      a run of augury learn
augury audit model.pt2 photos/ -g rotation --trust     a torch.export program
augury audit w.safetensors mnist -g T3 --architecture mlp5
augury audit my.models:net mnist -g C4 --drift fashion_mnist
augury audit runs/a mnist5k -g C4 --fail-above LI=0.5  exit code {BEYOND_LIMIT} beyond it
"""

Source = Annotated[
    str,
    o.argument(
        "MODEL",
        "A run folder, a .safetensors with --architecture, package.module:callable; with --trust a .pt2 or .pt.",
    ),
]
Group_ = Annotated[
    str | None,
    o.option(
        "--group -g",
        "What the model should be invariant to: C4, T3, flip_x, rotation, translation, scale, color, ... "
        "Default: what a run has learned.",
        o.METHOD,
    ),
]
Drift = Annotated[
    list[str] | None, o.option("--drift", "Another data set to audit on, read like DATA; may be repeated.", o.METHOD)
]
Corruptions = Annotated[
    bool, o.option("--corruptions/--no-corruptions", "Also audit on corrupted copies of DATA. Default: yes.", o.METHOD)
]
Architecture = Annotated[
    str | None,
    o.option("--architecture", f"The network of a .safetensors: {', '.join(NETWORKS)}.", o.METHOD, complete=NETWORKS),
]
Trust = Annotated[
    bool, o.option("--trust", "Load a .pt2, .pt or .pth, which can run arbitrary code with your rights.", o.METHOD)
]
Part = Annotated[str | None, o.option("--part", "test or train. Default: test, if there is one.", o.DATA)]
Levels = Annotated[int | None, o.option("--levels", f"Steps of strength. Default: {AuditConfig.levels}.", o.METHOD)]
Saliency = Annotated[
    str | None,
    o.option(
        "--saliency",
        "gradient (paper D), or captum's integrated_gradients, input_x_gradient, feature_ablation. "
        f"Default: {AuditConfig.saliency}.",
        o.METHOD,
    ),
]
FailAbove = Annotated[
    list[str] | None,
    o.option("--fail-above", f"Exit with {BEYOND_LIMIT} if a figure is larger, such as LI=0.5; may be repeated."),
]
FailBelow = Annotated[
    list[str] | None,
    o.option("--fail-below", f"Exit with {BEYOND_LIMIT} if a figure is smaller, such as SI=0.95; may be repeated."),
]
Pictures = Annotated[Path | None, o.option("--pictures", "Write the worst inputs and their saliency maps to a .png.")]


def audit(
    model: Source,
    data: o.Data,
    group: Group_ = None,
    width: o.Widths = None,
    drift: Drift = None,
    corruptions: Corruptions = True,
    architecture: Architecture = None,
    trust: Trust = False,
    part: Part = None,
    size: o.Size = None,
    task: o.Task = None,
    kind: o.Kind = None,
    skip_bad: o.SkipBad = None,
    images: Annotated[int | None, o.images("inputs", "all")] = None,
    levels: Levels = None,
    saliency: Saliency = None,
    seed: o.Seed = None,
    devices: o.Devices = None,
    fail_above: FailAbove = None,
    fail_below: FailBelow = None,
    pictures: Pictures = None,
    run: o.Run = None,
    overwrite: o.Overwrite = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check the settings, call `augury.audit`, and show what it returns."""
    settings = o.given(locals(), ("part", "images", "levels", "saliency", "corruptions", "seed"))
    AuditConfig.of(**settings)
    reading = o.given(locals(), ("size", "task", "kind", "skip_bad"))
    if architecture is not None:
        choose("architecture", architecture, NETWORKS)
    if pictures is not None and pictures.suffix != ".png":
        raise InputError(f"--pictures must name a .png; got {pictures}.")
    limits = dict.fromkeys(FIGURES, float)
    above, below = (pairs(texts, "a limit", "LI=0.5", limits) for texts in (fail_above, fail_below))
    how_far = widths(width, quiet)
    first = is_first()
    folder = _folder(run, model, group, overwrite) if first else Path()
    with interruptible():
        from augury.auditing.audit import examine
        from augury.auditing.worst import leave_audit, save_worst
        from augury.data.unlabelled import load_inputs

        fabric = launched(devices, "cpu")
        with sharing_errors(fabric):
            found, *others = (read_data(load_inputs, place, quiet, **reading) for place in (data, *(drift or ())))
        stems = [Path(source).stem for source in drift or ()]
        names = [s if stems.count(s) == 1 else source for s, source in zip(stems, drift or (), strict=True)]
        named = dict(zip(names, others, strict=True))
        with step_bar(quiet) as step:
            settings |= {"architecture": architecture, "trust": trust, "step": step, "fabric": fabric}
            seen = examine(model, found, group, widths=how_far, drift=named, **settings)
        if not first:
            return
        if pictures is not None:
            save_worst(pictures, seen.cases)
        leave_audit(folder, seen)
    report = leave_report(folder)
    if json:
        print_json({**seen.audit.to_json(), "report": str(report)})
    else:
        out.print(summary(seen.audit))
    if not quiet:
        where = "" if pictures is None else f"The worst inputs are in {pictures}. "
        note(f"{where}The audit is in {folder}, its report in {report}", style="default")
    exceeded = beyond_limits(seen.audit, above, below)
    for message in exceeded:
        note(message, style="red")
    if exceeded:
        raise typer.Exit(BEYOND_LIMIT)


def _folder(run: Path | None, model: str, group: str | None, overwrite: bool) -> Path:
    """Return the folder of the audit: the one that was named, or a new one."""
    if run is None:
        return new_folder(re.sub(r"[^A-Za-z0-9_.+-]+", "-", f"audit-{Path(model).stem}-{group or 'learned'}"))
    if holds_something(run) and not (overwrite and (run / AUDIT).is_file()):
        raise InputError(
            f"{run} already exists. Replace it if it is an audit (--overwrite), or choose another (--run)."
        )
    check_writable(run)
    return run


def summary(audit: Audit) -> Group:
    """Return what is shown of an audit."""
    rows = {"as they are": audit.scores, "noise floor": audit.noise_floor, **audit.drift}
    strengths = {f"{p.strength:g} {p.unit}": p.scores for p in audit.curve}
    parts: list[Any] = [Text(f"{audit.group}: {audit.verdict}", "bold"), Text(audit.why), Text(audit.advice), ""]
    parts.append(_scores(f"On {audit.images} inputs of {audit.data}", "inputs", rows))
    parts += [Text(LEGEND, style="dim"), ""]
    parts.append(_scores("By strength", "moved by", strengths))
    if audit.per_class:
        parts.append(_scores("By class", "class", audit.per_class))
    if audit.worst:
        parts.append(_worst(audit))
    if audit.sigma_max_jacobian is not None:
        parts.append(f"Largest singular value of the Jacobian: {audit.sigma_max_jacobian:.3g}")
    return Group(*parts)


LEGEND = """\
LI: squared distance between the logits of an input and its view; relative: as a share of that of two inputs;
DI: KL divergence of predictions; SI: cosine of saliency maps; agreement: views that keep the prediction."""


def _scores(title: str, first: str, rows: dict[str, Scores]) -> Table:
    lines = []
    for name, s in rows.items():
        relative = "-" if s.LI_relative is None else f"{s.LI_relative:.3f}"
        DI = "-" if s.DI is None else f"{s.DI.value:.2g}"
        agreement = "-" if s.agreement is None else percent(s.agreement.value)
        lines.append([name, _measure(s.LI, ".3g"), relative, DI, _measure(s.SI, ".3f"), agreement])
    return table(title, (first, "LI", "relative", "DI", "SI", "agreement"), lines, frame=False)


def _measure(measure: Measure | None, form: str) -> str:
    if measure is None:
        return "-"
    error = "" if measure.stderr is None else f" +- {measure.stderr:.1g}"
    return f"{measure.value:{form}}{error}"


def _worst(audit: Audit) -> Table:
    columns = ("input", "class", "says", "moved by", "then says", "LI", "SI")
    rows = []
    for w in audit.worst:
        moved, SI = f"{w.strength:g} {audit.curve[0].unit}", "-" if w.SI is None else f"{w.SI:.2f}"
        first = (str(w.index), w.label or "-", w.prediction)
        rows.append([*first, moved, w.prediction_moved, f"{w.LI:.3g}", SI])
    return table("The worst inputs", columns, rows, left=7, frame=False)
