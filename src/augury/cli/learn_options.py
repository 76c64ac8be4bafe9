"""The options of `augury learn`. Loads no torch."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from augury.config.learn import DEFAULT_METHOD, LearnConfig
from augury.data.named import NAMED
from augury.methods.registry import METHODS
from augury.models.networks import NETWORKS
from augury.transforms.vocabulary import WORDS

DATA, TRAINING, OUTPUT = "The data", "The training", "The run and what is shown"


def completion(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what a shell asks for the words that may follow."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def _option(*names: str, help: str, panel: str, complete: Iterable[str] = ()) -> Any:
    words = completion(complete) if complete else None
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, autocompletion=words)


Source = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="A named set (see augury data list), a folder with one sub-folder per class, or an .npz.",
        autocompletion=completion(NAMED),
        show_default=False,
    ),
]
Variant = Annotated[
    str | None,
    _option(
        "--variant",
        help="Plant a truth in the data: rotated, translated, scaled, ...",
        panel=DATA,
        complete=("rotated", "partially_rotated", "translated", "scaled", "coloured_rotated"),
    ),
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
    bool | None, _option("--skip-bad", help="Go on past images that cannot be read; count them.", panel=DATA)
]

Method = Annotated[
    str | None,
    _option(
        "--method",
        "-m",
        help="; ".join(f"{name}: {row.summary}" for name, row in METHODS.items())
        + f". Default: {DEFAULT_METHOD}; augmented with --policy.",
        panel=TRAINING,
        complete=METHODS,
    ),
]
Model = Annotated[
    str | None,
    _option(
        "--model",
        help=f"{', '.join(NETWORKS)}. Default: what suits the data; cnn for images.",
        panel=TRAINING,
        complete=NETWORKS,
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
        complete=WORDS["image"],
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
    int | None, _option("--seed", help="Everything random follows from it. Default: 0.", panel=TRAINING)
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
    bool | None,
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
Policy = Annotated[
    Path | None,
    _option(
        "--policy",
        help="Generators and widths from a policy.json that augury export wrote, or from a run's folder.",
        panel=TRAINING,
    ),
]
Tensorboard = Annotated[
    Path | None,
    _option("--tensorboard", help="Write curves for TensorBoard to this folder.", panel=OUTPUT),
]
Config = Annotated[
    Path | None,
    _option(
        "--config",
        help="Read what is not given here from a TOML file: any option, any setting, by its name.",
        panel=OUTPUT,
    ),
]
PrintConfig = Annotated[
    bool,
    _option("--print-config", help="Print all of it as TOML that --config reads, and stop.", panel=OUTPUT),
]
DryRun = Annotated[
    bool,
    _option(
        "--dry-run",
        help="Say what would be done, its memory and about how long, after a few timed steps; then stop.",
        panel=OUTPUT,
    ),
]
