"""`augury amortize`: the options, and all that can be refused before torch is loaded."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from augury.cli.console import err
from augury.config.hyper import METHODS, AmortizeConfig
from augury.core.errors import InputError, choose
from augury.methods.hyper.groups import GROUPS, OPERATIONS, parse_groups
from augury.models.networks import ENCODERS
from augury.training.run_folder import check_run, holds_something

DATA, TRAINING, OUTPUT = "The images", "The pre-training", "The extractor and what is shown"


def _option(*names: str, help: str, panel: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False)


Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A named set (see augury data list), a folder of images, or an .npz; no labels needed.",
    ),
]
Variant = Annotated[str | None, _option("--variant", help="Plant a truth in a named set.", panel=DATA)]
Subset = Annotated[int | None, _option("--subset", help="Take so many images only.", panel=DATA)]
Size = Annotated[int | None, _option("--size", help="Resize images to so many pixels a side.", panel=DATA)]
SkipBad = Annotated[bool, _option("--skip-bad", help="Go on past images that cannot be read.", panel=DATA)]
Groups = Annotated[
    str | None,
    _option(
        "--groups",
        "-g",
        help=f"The invariances to span, by commas: {', '.join([*GROUPS, *OPERATIONS])}; or of your own, such as "
        "turn=rotation:30+flip.",
        panel=TRAINING,
    ),
]
Method = Annotated[
    str,
    _option(
        "--method",
        "-m",
        help="; ".join(f"{name}: {what}" for name, what in METHODS.items()) + ". Default: contrastive.",
        panel=TRAINING,
    ),
]
Encoder = Annotated[
    str | None,
    _option(
        "--encoder",
        help="; ".join(f"{name}: {row.description}" for name, row in ENCODERS.items())
        + ". Default: resnet10_16; conv16 for multitask.",
        panel=TRAINING,
    ),
]
Epochs = Annotated[
    int | None,
    _option("--epochs", help=f"Passes over the images. Default: {AmortizeConfig.epochs}.", panel=TRAINING),
]
Batch = Annotated[
    int | None,
    _option("--batch", help=f"Images in a mini-batch. Default: {AmortizeConfig.batch}.", panel=TRAINING),
]
Seed = Annotated[
    int, _option("--seed", help="Everything random follows from it. Default: 0.", panel=TRAINING)
]
Device = Annotated[
    str | None, _option("--device", help="cpu, cuda, mps, as torch names them. Default: cpu.", panel=TRAINING)
]
Set = Annotated[
    list[str] | None,
    _option("--set", help="Any other setting, such as rate=0.001; may be repeated.", panel=TRAINING),
]
Out = Annotated[
    Path | None,
    _option("--out", help="Folder for the extractor. Default: a new one in runs/.", panel=OUTPUT),
]
Overwrite = Annotated[bool, _option("--overwrite", help="Replace what stands in the folder.", panel=OUTPUT)]
Resume = Annotated[bool, _option("--resume", help="Continue what stands in the folder.", panel=OUTPUT)]
Json = Annotated[
    bool, _option("--json", help="Print one JSON object on standard output, nothing else.", panel=OUTPUT)
]
Quiet = Annotated[bool, _option("--quiet", "-q", help="No progress bar, no remarks.", panel=OUTPUT)]

HELP = """
Make one extractor of features that spans many invariances (paper C).

It is pre-trained once, without labels; augury adapt then finds, for each
new task, how invariant to be to each group, in seconds. The folder gets
config.json, metrics.jsonl, checkpoint/ and model.safetensors.

\b
augury amortize photos/ --groups rotation,color --size 64
augury amortize imagenette64 --groups ventral,dorsal     paper C's HyperSimCLR
augury amortize photos/ -g "turn=rotation:30+flip,look=jitter+blur"
augury amortize mnist5k --method multitask               paper C's coloured digits
augury amortize photos/ -g crop,color --out a --resume   go on where it was stopped
"""


def amortize(
    data: Source,
    groups: Groups = None,
    method: Method = "contrastive",
    encoder: Encoder = None,
    variant: Variant = None,
    subset: Subset = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    epochs: Epochs = None,
    batch: Batch = None,
    seed: Seed = 0,
    device: Device = None,
    set_: Set = None,
    out: Out = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check what was asked, then do it; see `HELP`."""
    given = {"epochs": epochs, "batch": batch, "device": device, "seed": seed}
    settings = {name: value for name, value in given.items() if value is not None} | _settings(set_ or [])
    if encoder is not None:
        settings["encoder"] = choose("encoder", encoder, ENCODERS)
    AmortizeConfig.for_method(method, **settings)
    if groups is None and method == "contrastive":
        raise InputError("--groups must name the invariances to span, such as --groups rotation,color.")
    if groups is not None:
        parse_groups(groups)
    folder = _folder(out, data, overwrite=overwrite, resume=resume)
    reading = {"variant": variant, "subset": subset, "size": size, "seed": seed, "skip_bad": skip_bad}
    from augury.cli.amortizing import Request, carry_out

    request = Request(
        data,
        {name: value for name, value in reading.items() if value is not None},
        groups,
        method,
        settings,
        folder,
        overwrite,
        resume,
    )
    try:
        carry_out(request, as_json=json, quiet=quiet)
    except KeyboardInterrupt:
        err.print(
            f"Interrupted. The same command with --out {folder} --resume goes on from the last checkpoint.",
            style="yellow",
            soft_wrap=True,
        )
        raise typer.Exit(130) from None


def _folder(out: Path | None, data: str, *, overwrite: bool, resume: bool) -> Path:
    """Return the folder that was named, or a new one."""
    if out is not None:
        check_run(out, overwrite=overwrite, resume=resume)
        return out
    if resume:
        raise InputError("--resume must know what to continue. Name the folder: --out runs/NAME.")
    name = f"{Path(data).stem or 'data'}-extractor"
    paths = (Path("runs") / (name if k == 1 else f"{name}-{k}") for k in range(1, 1_000_000))
    return next(path for path in paths if not holds_something(path))


def _settings(texts: list[str]) -> dict[str, Any]:
    """Read name=value pairs as the fields of `AmortizeConfig` that they name."""
    kinds: dict[str, Any] = {field.name: field.type for field in fields(AmortizeConfig)}
    return dict(_setting(text, kinds) for text in texts)


def _setting(text: str, kinds: dict[str, Any]) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise InputError(f"a setting must read name=value, such as rate=0.001; got '{text}'.")
    kind = kinds[choose("setting", name, kinds)]
    try:
        return name, {"true": True, "false": False}[value.lower()] if kind is bool else kind(value)
    except (ValueError, KeyError) as error:
        words = {bool: "true or false", int: "a whole number", float: "a number"}
        raise InputError(f"{name} must be {words[kind]}; got '{value}'.") from error
