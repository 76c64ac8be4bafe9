"""`augury learn`: the options, and all that can be refused before torch is loaded."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from augury.cli.console import err
from augury.core.errors import InputError, choose
from augury.methods.catalog import METHODS
from augury.models.catalog import NETWORKS
from augury.training.config import DEFAULT_METHOD, LearnConfig, method_name
from augury.training.run_folder import check_run, new_folder

EVALUATIONS, EVALUATED = 8, 250
"""How often a run is scored on its way unless told, and on how many test inputs: a few per cent of its time."""
DATA, TRAINING, OUTPUT = "The data", "The training", "The run and what is shown"


def _option(*names: str, help: str, panel: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False)


Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A named set (see augury data list), a folder with one sub-folder per class, or an .npz.",
    ),
]
Variant = Annotated[
    str | None,
    _option("--variant", help="Plant a truth in the data: rotated, translated, scaled, ...", panel=DATA),
]
Subset = Annotated[int | None, _option("--subset", help="Train on so many examples only.", panel=DATA)]
Test = Annotated[
    str | None,
    _option("--test", help="A separate test set, read like DATA; else a part is split off.", panel=DATA),
]
TestFraction = Annotated[
    float | None, _option("--test-fraction", help="How much to split off for testing.", panel=DATA)
]
Size = Annotated[int | None, _option("--size", help="Resize images to so many pixels a side.", panel=DATA)]
Task = Annotated[
    str | None, _option("--task", help="classification or regression; told from the labels.", panel=DATA)
]
SkipBad = Annotated[
    bool, _option("--skip-bad", help="Go on past images that cannot be read; count them.", panel=DATA)
]

Method = Annotated[
    str,
    _option(
        "--method",
        "-m",
        help="; ".join(f"{name}: {row.summary}" for name, row in METHODS.items())
        + f". Default: {DEFAULT_METHOD}.",
        panel=TRAINING,
    ),
]
Model = Annotated[
    str | None,
    _option(
        "--model",
        help=f"{', '.join(NETWORKS)}. Default: what suits the data; cnn for images.",
        panel=TRAINING,
    ),
]
Generators = Annotated[
    list[str] | None,
    _option(
        "--generators",
        "-g",
        help="What may act: affine, rotation, translation, scale, color, flip_x, C4, ...; several by commas. "
        "Default: all six affine generators on images.",
        panel=TRAINING,
    ),
]
Widths = Annotated[
    list[str] | None,
    _option(
        "--width", "-w", help="A width at the start, such as rotation=30; may be repeated.", panel=TRAINING
    ),
]
Samples = Annotated[
    int | None,
    _option(
        "--samples",
        "-S",
        help=f"Views per input. Default: {LearnConfig.samples}, or the method's own.",
        panel=TRAINING,
    ),
]
Epochs = Annotated[
    int | None,
    _option(
        "--epochs",
        help=f"Passes over the data. Default: {LearnConfig.epochs}, or the method's own.",
        panel=TRAINING,
    ),
]
Batch = Annotated[
    int | None,
    _option("--batch", help=f"Inputs in a mini-batch. Default: {LearnConfig.batch}.", panel=TRAINING),
]
Seed = Annotated[
    int, _option("--seed", help="Everything random follows from it. Default: 0.", panel=TRAINING)
]
Device = Annotated[
    str | None, _option("--device", help="cpu, cuda, mps, as torch names them. Default: cpu.", panel=TRAINING)
]
Set = Annotated[
    list[str] | None,
    _option(
        "--set",
        help="Any other setting, such as rate=0.001 or settle_window=20; may be repeated.",
        panel=TRAINING,
    ),
]

Run = Annotated[
    Path | None,
    _option("--run", help="Folder for all that the run leaves. Default: a new one in runs/.", panel=OUTPUT),
]
Overwrite = Annotated[
    bool, _option("--overwrite", help="Replace a run that stands in the folder.", panel=OUTPUT)
]
Resume = Annotated[
    bool,
    _option(
        "--resume", help="Continue the run in the folder, to the bits it would have reached.", panel=OUTPUT
    ),
]
Baseline = Annotated[
    bool,
    _option(
        "--baseline/--no-baseline",
        help="Train the plain network too, to compare. Default: yes.",
        panel=OUTPUT,
    ),
]
Json = Annotated[
    bool, _option("--json", help="Print one JSON object on standard output, nothing else.", panel=OUTPUT)
]
Quiet = Annotated[bool, _option("--quiet", "-q", help="No progress bar, no remarks.", panel=OUTPUT)]


HELP = """
Learn which transformations leave the labels alone, and how far.

The widths are learned from the training data while the network trains:
no validation set, no search. A run leaves config.json, metrics.jsonl,
checkpoint/, model.safetensors, invariance.json, views/ and report.html,
a page that shows all of it, in its folder.

\b
augury learn mnist5k --variant rotated              real digits with a planted rotation
augury learn my_photos/ --model resnet_8_16         your own images, one sub-folder per class
augury learn data.npz -g rotation,flip_x            only some transformations
augury learn mnist5k -m augmented -w rotation=30    widths that you fix
augury learn mnist5k --run runs/a --resume          go on where a run was stopped
augury learn mnist5k --json > result.json           for a script
"""


def learn(
    data: Source,
    variant: Variant = None,
    subset: Subset = None,
    test: Test = None,
    test_fraction: TestFraction = None,
    size: Size = None,
    task: Task = None,
    skip_bad: SkipBad = False,
    method: Method = DEFAULT_METHOD,
    model: Model = None,
    generators: Generators = None,
    width: Widths = None,
    samples: Samples = None,
    epochs: Epochs = None,
    batch: Batch = None,
    seed: Seed = 0,
    device: Device = None,
    set_: Set = None,
    run: Run = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    baseline: Baseline = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check what was asked, then do it; see `HELP`."""
    given = {"samples": samples, "epochs": epochs, "batch": batch, "device": device, "seed": seed}
    settings = {name: value for name, value in given.items() if value is not None} | _settings(set_ or [])
    if generators:
        settings["generators"] = tuple(word for part in generators for word in part.split(",") if word)
    if width:
        settings["widths"] = {name: _number(name, value) for name, value in map(_pair, width)}
    if model is not None:
        settings["model"] = choose("model", model, NETWORKS)
    method = method_name(method)
    config = LearnConfig.for_method(method, **settings)
    if "evaluate_every" not in settings:  # a curve for the report; it never steers the training
        settings["evaluate_every"] = -(-config.epochs // EVALUATIONS)
        settings["evaluate_images"] = config.evaluate_images or EVALUATED
    folder = _folder(run, data, variant, method, overwrite=overwrite, resume=resume)
    reading = {
        "variant": variant,
        "subset": subset,
        "test": test,
        "test_fraction": test_fraction,
        "size": size,
    }
    reading |= {"task": task, "seed": seed, "skip_bad": skip_bad}
    from augury.cli.learning import Request, carry_out

    request = Request(
        data, {k: v for k, v in reading.items() if v is not None}, method, settings, folder, overwrite, resume
    )
    try:
        carry_out(request, baseline=baseline and method != "plain", as_json=json, quiet=quiet)
    except KeyboardInterrupt:
        err.print(
            f"Interrupted. The same command with --run {folder} --resume goes on from the last checkpoint.",
            style="yellow",
            soft_wrap=True,
        )
        raise typer.Exit(130) from None


def _folder(
    run: Path | None, data: str, variant: str | None, method: str, *, overwrite: bool, resume: bool
) -> Path:
    """Return the run's folder: the one that was named, or a new one."""
    if run is not None:
        check_run(run, overwrite=overwrite, resume=resume)
        return run
    if resume:
        raise InputError("--resume must know which run to continue. Name its folder: --run runs/NAME.")
    name = "-".join(word for word in (Path(data).stem or "data", variant, method) if word)
    return new_folder(name)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InputError(f"a setting must read name=value, such as rotation=30; got '{text}'.")
    return name.strip(), value.strip()


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{name} must be a number; got '{text}'.") from error


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"{name} must be a whole number; got '{text}'.") from error


def _settings(texts: list[str]) -> dict[str, Any]:
    """Read name=value pairs as the fields of `LearnConfig` that they name."""
    readers: dict[Any, Any] = {int: _whole, float: _number, str: lambda name, text: text}
    kinds = {field.name: field.type for field in fields(LearnConfig) if field.type in readers}
    return {
        name: readers[kinds[choose("setting", name, kinds)]](name, text) for name, text in map(_pair, texts)
    }
