"""Options that several commands share, each declared once; a command's own are in its file. Loads no torch."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from augury.config.learn import DEFAULT_METHOD, LearnConfig
from augury.data.named import NAMED
from augury.methods.registry import METHODS
from augury.models.networks import NETWORKS

DATA, TRAINING, OUTPUT = "Data", "Training", "Output"
"""Panels of the help, the same for every command."""
READING = ("variant", "subset", "test", "test_fraction", "size", "task", "kind", "skip_bad", "seed")
"""Options that are arguments of `augury.load`."""


def option(*names: str, help: str, panel: str = OUTPUT, complete: Iterable[str] = ()) -> Any:
    """Declare an option; `complete` are the words that a shell offers for it."""
    words = completion(complete) if complete else None
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, autocompletion=words)


def argument(metavar: str, help: str, complete: Iterable[str] = ()) -> Any:
    """Declare an argument."""
    words = completion(complete) if complete else None
    return typer.Argument(metavar=metavar, help=help, show_default=False, autocompletion=words)


def completion(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return the function that a shell calls for the words that may follow."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def given(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return those of the named options that have a value."""
    return {name: options[name] for name in names if options.get(name) is not None}


def epochs(default: str) -> Any:
    """Declare --epochs."""
    return option("--epochs", help=f"Passes over the data. Default: {default}.", panel=TRAINING)


def batch(default: int) -> Any:
    """Declare --batch."""
    return option("--batch", help=f"Inputs in a mini-batch. Default: {default}.", panel=TRAINING)


def images(what: str, default: str) -> Any:
    """Declare --images."""
    return option("--images", help=f"Number of {what}, drawn at random. Default: {default}.", panel=DATA)


_source = argument(
    "DATA",
    "A named set (see augury data list), a folder with one sub-folder per class, or an .npz file.",
    NAMED,
)
Data = Annotated[str, _source]
DataIfAny = Annotated[str | None, _source]
Variant = Annotated[
    str | None,
    option(
        "--variant",
        help="Plant a known invariance in the data: rotated, translated, scaled, ...",
        panel=DATA,
        complete=("rotated", "partially_rotated", "translated", "scaled", "coloured_rotated"),
    ),
]
Subset = Annotated[
    int | None, option("--subset", help="Number of training examples. Default: all.", panel=DATA)
]
Test = Annotated[
    str | None,
    option("--test", help="A separate test set, read like DATA. Default: its own, or a split.", panel=DATA),
]
TestFraction = Annotated[
    float | None,
    option(
        "--test-fraction", help="Fraction to split off for testing; 0 for none. Default: 0.2.", panel=DATA
    ),
]
Size = Annotated[int | None, option("--size", help="Resize images to this many pixels a side.", panel=DATA)]
Task = Annotated[
    str | None,
    option("--task", help="classification or regression. Default: inferred from the labels.", panel=DATA),
]
Kind = Annotated[
    str | None,
    option(
        "--kind",
        help="image, signal, points, coordinates or features. Default: inferred from the shape.",
        panel=DATA,
    ),
]
SkipBad = Annotated[
    bool | None, option("--skip-bad", help="Skip images that cannot be read, and count them.", panel=DATA)
]

Method = Annotated[
    str | None,
    option(
        "--method",
        "-m",
        help="; ".join(f"{name}: {row.summary}" for name, row in METHODS.items())
        + f". Default: {DEFAULT_METHOD}, or augmented with --policy.",
        panel=TRAINING,
        complete=METHODS,
    ),
]
Model = Annotated[
    str | None,
    option(
        "--model",
        help=f"{', '.join(NETWORKS)}. Default: chosen by the kind of data; cnn for images.",
        panel=TRAINING,
        complete=NETWORKS,
    ),
]
Widths = Annotated[
    list[str] | None,
    option(
        "--width",
        "-w",
        help="A width, such as rotation=30 (degrees) or flip_x=50 (per cent); may be repeated.",
        panel=TRAINING,
    ),
]
Samples = Annotated[
    int | None,
    option(
        "--samples",
        "-S",
        help=f"Views per input. Default: {LearnConfig.samples}, or the method's own.",
        panel=TRAINING,
    ),
]
Seed = Annotated[int | None, option("--seed", help="Seed of everything random. Default: 0.", panel=TRAINING)]
Device = Annotated[
    str | None, option("--device", help="cpu, cuda, mps, as torch names them. Default: cpu.", panel=TRAINING)
]
Set = Annotated[
    list[str] | None,
    option("--set", help="Any other setting, such as rate=0.001; may be repeated.", panel=TRAINING),
]

Run = Annotated[
    Path | None,
    option("--run", "--out", help="Folder for the results. Default: a new one in runs/."),
]
Overwrite = Annotated[bool, option("--overwrite", help="Replace what is in the folder.")]
Resume = Annotated[bool, option("--resume", help="Continue the run in the folder; it resumes bit for bit.")]
File = Annotated[Path | None, option("--out", "-o", help="The file to write.")]
Json = Annotated[bool, option("--json", help="Print one JSON object on standard output, nothing else.")]
Quiet = Annotated[bool, option("--quiet", "-q", help="No progress bar, no remarks.")]
