"""Options that several commands share, each declared once; a command's own are in its file. Loads no torch."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from augury.config.learn import DEFAULT_METHOD, LearnConfig
from augury.data.named import NAMED
from augury.methods.registry import METHODS
from augury.models.networks import NETWORKS

DATA, METHOD, OUTPUT = "Data", "Method", "Output"  # panels of the help, the same for every command
READING = ("variant", "subset", "test", "test_fraction", "size", "task", "kind", "skip_bad", "seed")
"""Options that are arguments of `augury.load`."""


def option(names: str, help: str, panel: str = OUTPUT, complete: Iterable[str] = ()) -> Any:
    """Declare an option by its names, separated by spaces; `complete` are the words that a shell offers for it."""
    words = completion(complete) if complete else None
    return typer.Option(*names.split(), help=help, rich_help_panel=panel, show_default=False, autocompletion=words)


def argument(metavar: str, help: str, complete: Iterable[str] = ()) -> Any:
    words = completion(complete) if complete else None
    return typer.Argument(metavar=metavar, help=help, show_default=False, autocompletion=words)


def completion(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return the function that a shell calls for the words that may follow."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def given(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return those of the named options that have a value."""
    return {name: options[name] for name in names if options.get(name) is not None}


def epochs(default: str) -> Any:
    return option("--epochs", f"Passes over the data. Default: {default}.", METHOD)


def batch(default: int) -> Any:
    return option("--batch", f"Inputs in a mini-batch. Default: {default}.", METHOD)


def images(what: str, default: str) -> Any:
    return option("--images", f"Number of {what}, drawn at random. Default: {default}.", DATA)


_source = argument(
    "DATA", "A named set (see augury data list), a folder with one sub-folder per class, or an .npz file.", NAMED
)
Data = Annotated[str, _source]
DataIfAny = Annotated[str | None, _source]
Variant = Annotated[
    str | None,
    option(
        "--variant",
        "Plant a known invariance in the data: rotated, translated, scaled, ...",
        DATA,
        complete=("rotated", "partially_rotated", "translated", "scaled", "coloured_rotated"),
    ),
]
Subset = Annotated[int | None, option("--subset", "Number of training examples. Default: all.", DATA)]
Test = Annotated[
    str | None, option("--test", "A separate test set, read like DATA. Default: its own, or a split.", DATA)
]
TestFraction = Annotated[
    float | None, option("--test-fraction", "Fraction to split off for testing; 0 for none. Default: 0.2.", DATA)
]
Size = Annotated[
    int | None,
    option("--size", "Resize images to this many pixels a side. Default: their own, reduced to 64 for the cnn.", DATA),
]
Task = Annotated[str | None, option("--task", "classification or regression. Default: inferred from the labels.", DATA)]
Kind = Annotated[
    str | None,
    option("--kind", "image, signal, points, coordinates or features. Default: inferred from the shape.", DATA),
]
SkipBad = Annotated[bool | None, option("--skip-bad", "Skip images that cannot be read, and count them.", DATA)]

Method = Annotated[
    str | None,
    option(
        "--method -m",
        "; ".join(f"{name}: {row.summary}" for name, row in METHODS.items())
        + f". Default: {DEFAULT_METHOD}, or augmented with --policy.",
        METHOD,
        complete=METHODS,
    ),
]
Model = Annotated[
    str | None,
    option(
        "--model",
        f"{', '.join(NETWORKS)}. Default: chosen by the kind of data; cnn for images.",
        METHOD,
        complete=NETWORKS,
    ),
]
Widths = Annotated[
    list[str] | None,
    option("--width -w", "A width, such as rotation=30 (degrees) or flip_x=50 (per cent); may be repeated.", METHOD),
]
Samples = Annotated[
    int | None, option("--samples -S", f"Views per input. Default: {LearnConfig.samples}, or the method's own.", METHOD)
]
Seed = Annotated[int | None, option("--seed", "Seed of everything random. Default: 0.", METHOD)]
Device = Annotated[str | None, option("--device", "cpu, cuda, mps, as torch names them. Default: cpu.", METHOD)]
Devices = Annotated[
    int | None,
    option(
        "--devices",
        "Processes on this machine that share every batch; the answer is that of one. torchrun starts them on several "
        "machines. Default: 1.",
        METHOD,
    ),
]
Set = Annotated[list[str] | None, option("--set", "Any other setting, such as rate=0.001; may be repeated.", METHOD)]

Run = Annotated[Path | None, option("--run --out", "Folder for the results. Default: a new one in runs/.")]
Overwrite = Annotated[bool, option("--overwrite", "Replace what is in the folder.")]
Resume = Annotated[bool, option("--resume", "Continue the run in the folder; it resumes bit for bit.")]
Json = Annotated[bool, option("--json", "Print one JSON object on standard output, nothing else.")]
Quiet = Annotated[bool, option("--quiet -q", "No progress bar, no remarks.")]
