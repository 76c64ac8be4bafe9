"""`augury audit`: the options, and all that can be refused before torch is loaded."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from augury.cli.console import err
from augury.config.audit import AuditConfig
from augury.core.errors import InputError, choose
from augury.core.files import check_writable
from augury.models.networks import NETWORKS
from augury.records.exhibits import AUDIT
from augury.training.run_folder import holds_something, new_folder

ASKED, DEPTH, OUTPUT = "What is asked", "How thoroughly", "What is shown"

FIGURES = ("LI", "LI_relative", "DI", "SI", "agreement", "sigma_max_jacobian", "sigma_max_relative")
"""What a limit can be set on."""

BEYOND_LIMIT = 3
"""Exit code where a limit is passed."""


def _option(*names: str, help: str, panel: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False)


Source = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A run folder, a .safetensors with --architecture, package.module:callable; with --trust a .pt2 or .pt.",
    ),
]
Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="A named set, a folder with one sub-folder per class, or an .npz."),
]
Group = Annotated[
    str | None,
    _option(
        "--group",
        "-g",
        help="What the model should not see: C4, T3, flip_x, rotation, translation, scale, color, ... "
        "Default: what a run has learned.",
        panel=ASKED,
    ),
]
Widths = Annotated[
    list[str] | None,
    _option("--width", "-w", help="How far to go, such as rotation=30; may be repeated.", panel=ASKED),
]
Drift = Annotated[
    list[str] | None,
    _option("--drift", help="Other data to ask on, read like DATA; may be repeated.", panel=ASKED),
]
Corruptions = Annotated[
    bool,
    _option(
        "--corruptions/--no-corruptions",
        help="Ask on corrupted copies of DATA too. Default: yes.",
        panel=ASKED,
    ),
]
Architecture = Annotated[
    str | None,
    _option("--architecture", help=f"The network of a .safetensors: {', '.join(NETWORKS)}.", panel=ASKED),
]
Trust = Annotated[
    bool,
    _option(
        "--trust",
        help="Load a .pt2, .pt or .pth, which can run any code that its author put into it, with your rights.",
        panel=ASKED,
    ),
]
Part = Annotated[
    str | None, _option("--part", help="test or train. Default: test, where there is one.", panel=ASKED)
]
Images = Annotated[
    int | None, _option("--images", help="So many inputs, drawn at random. Default: all.", panel=DEPTH)
]
Levels = Annotated[
    int | None,
    _option("--levels", help=f"Steps of strength. Default: {AuditConfig.levels}.", panel=DEPTH),
]
Saliency = Annotated[
    str | None,
    _option(
        "--saliency",
        help="gradient (paper D), or captum's integrated_gradients, input_x_gradient, feature_ablation.",
        panel=DEPTH,
    ),
]
Seed = Annotated[int, _option("--seed", help="Everything random follows from it. Default: 0.", panel=DEPTH)]
FailAbove = Annotated[
    list[str] | None,
    _option(
        "--fail-above",
        help=f"Exit with {BEYOND_LIMIT} if a figure is larger, such as LI=0.5; may be repeated.",
        panel=OUTPUT,
    ),
]
FailBelow = Annotated[
    list[str] | None,
    _option(
        "--fail-below",
        help=f"Exit with {BEYOND_LIMIT} if a figure is smaller, such as SI=0.95; may be repeated.",
        panel=OUTPUT,
    ),
]
Pictures = Annotated[
    Path | None,
    _option("--pictures", help="Write the worst inputs and their saliency maps to a .png.", panel=OUTPUT),
]
Out = Annotated[
    Path | None,
    _option("--out", help="Folder for figures and report. Default: a new one in runs/.", panel=OUTPUT),
]
Overwrite = Annotated[
    bool, _option("--overwrite", help="Replace an audit that stands in the folder.", panel=OUTPUT)
]
Json = Annotated[
    bool, _option("--json", help="Print one JSON object on standard output, nothing else.", panel=OUTPUT)
]
Quiet = Annotated[bool, _option("--quiet", "-q", help="No progress bar, no remarks.", panel=OUTPUT)]

HELP = f"""
Ask whether a model's invariance is genuine, or holds on its training data only.

Measures how far logits (LI), predictions (DI, agreement) and saliency maps
(SI) of inputs and of their views differ, what interpolation alone would
cost, and whether it still holds on other data. An audit leaves audit.json,
views/ and report.html, a page that shows all of it, in a folder.

\b
augury audit runs/a mnist5k -g C4                      a run of augury learn
augury audit model.pt2 photos/ -g rotation --trust     a torch.export program
augury audit w.safetensors mnist -g T3 --architecture mlp5
augury audit my.models:net mnist -g C4 --drift fashion_mnist
augury audit runs/a mnist5k -g C4 --fail-above LI=0.5  exit code {BEYOND_LIMIT} beyond it
"""


def audit(
    model: Source,
    data: Data,
    group: Group = None,
    width: Widths = None,
    drift: Drift = None,
    corruptions: Corruptions = True,
    architecture: Architecture = None,
    trust: Trust = False,
    part: Part = None,
    images: Images = None,
    levels: Levels = None,
    saliency: Saliency = None,
    seed: Seed = 0,
    fail_above: FailAbove = None,
    fail_below: FailBelow = None,
    pictures: Pictures = None,
    out: Out = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check what was asked, then do it; see `HELP`."""
    given = {"part": part, "images": images, "levels": levels, "saliency": saliency}
    settings = {name: value for name, value in given.items() if value is not None}
    AuditConfig.of(**settings, corruptions=corruptions, seed=seed)
    if architecture is not None:
        choose("architecture", architecture, NETWORKS)
    if pictures is not None and pictures.suffix != ".png":
        raise InputError(f"--pictures must name a .png; got {pictures}.")
    above, below = _limits(fail_above), _limits(fail_below)
    widths = {name: _number(name, value) for name, value in map(_pair, width or [])}
    folder = _folder(out, model, group, overwrite)
    from augury.cli.auditing import Request, carry_out

    request = Request(
        model, data, group, widths, drift or [], architecture, trust,
        {**settings, "corruptions": corruptions, "seed": seed}, above, below, pictures, folder,
    )  # fmt: skip
    try:
        passed = carry_out(request, as_json=json, quiet=quiet)
    except KeyboardInterrupt:
        err.print("Interrupted.", style="yellow")
        raise typer.Exit(130) from None
    if not passed:
        raise typer.Exit(BEYOND_LIMIT)


def _folder(out: Path | None, model: str, group: str | None, overwrite: bool) -> Path:
    """Return where the audit goes: the folder that was named, or a new one."""
    if out is not None:
        if holds_something(out) and not (overwrite and (out / AUDIT).is_file()):
            raise InputError(
                f"{out} already exists. Replace it if it is an audit (--overwrite), or choose another (--out)."
            )
        check_writable(out)
        return out
    named = re.sub(r"[^A-Za-z0-9_.+-]+", "-", f"audit-{Path(model).stem}-{group or 'learned'}")
    return new_folder(named)


def _limits(texts: list[str] | None) -> dict[str, float]:
    return {choose("figure", name, FIGURES): _number(name, value) for name, value in map(_pair, texts or [])}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InputError(f"a limit or a width must read name=value, such as LI=0.5; got '{text}'.")
    return name.strip(), value.strip()


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{name} must be a number; got '{text}'.") from error
