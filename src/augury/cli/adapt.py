"""`augury adapt`: the options, and all that can be refused before torch is loaded."""

from pathlib import Path
from typing import Annotated, Any

import typer

from augury.cli.console import err
from augury.config.hyper import CRITERIA, AdaptConfig
from augury.core.errors import InputError

TASK, FITTING, OUTPUT = "The task", "The descriptor and the head", "The run and what is shown"


def _option(*names: str, help: str, panel: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False)


Extractor = Annotated[
    str,
    typer.Argument(
        metavar="EXTRACTOR", help="What augury amortize made: its folder, or its .safetensors file."
    ),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A named set (see augury data list), a folder with one sub-folder per class, or an .npz.",
    ),
]
Variant = Annotated[
    str | None, _option("--variant", help="Plant a truth in the data, such as coloured_rotated.", panel=TASK)
]
Subset = Annotated[int | None, _option("--subset", help="Train on so many examples only.", panel=TASK)]
Test = Annotated[
    str | None,
    _option("--test", help="A separate test set, read like DATA; else a part is split off.", panel=TASK),
]
TestFraction = Annotated[
    float | None,
    _option("--test-fraction", help="How much to split off for testing; 0 for nothing.", panel=TASK),
]
Size = Annotated[int | None, _option("--size", help="Resize images to so many pixels a side.", panel=TASK)]
Task = Annotated[
    str | None, _option("--task", help="classification or regression; told from the labels.", panel=TASK)
]
SkipBad = Annotated[
    bool, _option("--skip-bad", help="Go on past images that cannot be read; count them.", panel=TASK)
]
Criterion = Annotated[
    str | None,
    _option(
        "--criterion",
        help=f"What chooses the descriptor: {', '.join(CRITERIA)}. Default: evidence.",
        panel=FITTING,
    ),
]
Levels = Annotated[
    int | None,
    _option(
        "--levels", help="Discretise: 2 binary, 3 ternary, ... A tighter bound. Default: not.", panel=FITTING
    ),
]
Descriptor = Annotated[
    str | None,
    _option(
        "--descriptor",
        help="Fix it, such as rotation=1,color=0; only the head is learned.",
        panel=FITTING,
    ),
]
Images = Annotated[
    int | None,
    _option(
        "--images",
        help=f"At most so many examples choose the descriptor. Default: {AdaptConfig.images}.",
        panel=FITTING,
    ),
]
Seed = Annotated[int, _option("--seed", help="Everything random follows from it. Default: 0.", panel=FITTING)]
Device = Annotated[
    str | None, _option("--device", help="cpu, cuda, mps, as torch names them. Default: cpu.", panel=FITTING)
]
Run = Annotated[
    Path | None,
    _option("--run", help="Folder for the record and the adapted model. Default: none.", panel=OUTPUT),
]
Overwrite = Annotated[
    bool, _option("--overwrite", help="Replace an adaptation that stands in the folder.", panel=OUTPUT)
]
Json = Annotated[
    bool, _option("--json", help="Print one JSON object on standard output, nothing else.", panel=OUTPUT)
]
Quiet = Annotated[bool, _option("--quiet", "-q", help="No progress, no remarks.", panel=OUTPUT)]

HELP = """
Adapt an extractor to a new task: which invariances it needs, and a head.

The extractor stays as it is. The descriptor (how invariant to be to each
group) is chosen by the evidence of a linear head, in seconds and without a
validation set. With --run the adapted model is saved as a plain network.

\b
augury adapt runs/photos-extractor my_task/            a folder, one sub-folder per class
augury adapt runs/e faces.npz --task regression        numbers instead of classes
augury adapt runs/e my_task/ --levels 2 --run runs/a   binary, and keep the model
augury adapt runs/e my_task/ --descriptor rotation=1,color=0
augury adapt runs/e my_task/ --json > result.json      for a script
"""


def adapt(
    extractor: Extractor,
    data: Source,
    variant: Variant = None,
    subset: Subset = None,
    test: Test = None,
    test_fraction: TestFraction = None,
    size: Size = None,
    task: Task = None,
    skip_bad: SkipBad = False,
    criterion: Criterion = None,
    levels: Levels = None,
    descriptor: Descriptor = None,
    images: Images = None,
    seed: Seed = 0,
    device: Device = None,
    run: Run = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check what was asked, then do it; see `HELP`."""
    given = {"criterion": criterion, "levels": levels, "images": images, "device": device, "seed": seed}
    settings = {name: value for name, value in given.items() if value is not None}
    AdaptConfig.of(settings)
    entries = None if descriptor is None else _entries(descriptor)
    reading = {
        "variant": variant,
        "subset": subset,
        "test": test,
        "test_fraction": test_fraction,
        "size": size,
    }
    reading |= {"task": task, "seed": seed, "skip_bad": skip_bad}
    if not Path(extractor).expanduser().exists():
        raise InputError(f"no extractor at {extractor}. Make one: augury amortize DATA --groups ...")
    from augury.cli.adapting import Request, carry_out

    read = {name: value for name, value in reading.items() if value is not None}
    request = Request(Path(extractor).expanduser(), data, read, entries, settings, run, overwrite)
    try:
        carry_out(request, as_json=json, quiet=quiet)
    except KeyboardInterrupt:
        err.print("Interrupted.", style="yellow")
        raise typer.Exit(130) from None


def _entries(text: str) -> dict[str, float]:
    """Read "rotation=1,color=0"."""
    entries = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        try:
            entries[name] = float(value)
        except ValueError:
            equals = ""
        if not (name and equals):
            raise InputError(
                f"a descriptor must read group=number, such as rotation=1,color=0; got '{part}'."
            )
    return entries
