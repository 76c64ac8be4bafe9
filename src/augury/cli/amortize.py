"""`augury amortize`: everything that can be refused is refused before torch is loaded."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Group

from augury.cli import options as o
from augury.cli.console import interruptible, leave_report, live_bar, out, plural, print_json, read_data, say, table
from augury.cli.processes import is_first, launched, sharing_errors
from augury.cli.settings import pairs, settings_of
from augury.config.hyper import METHODS, AmortizeConfig
from augury.core.errors import InputError, choose
from augury.methods.hyper.groups import GROUPS, OPERATIONS, parse_groups
from augury.models.networks import ENCODERS
from augury.training.run_folder import MODEL, folder_for

if TYPE_CHECKING:
    from augury.records.saved import SavedModel

HELP = """
Make one extractor of features that spans many invariances (paper C).

It is pre-trained once, without labels; augury adapt then finds, for each
new task, how invariant to be to each group, in seconds. The folder gets
config.json, metrics.jsonl, checkpoint/ and model.safetensors.

\b
augury amortize photos/ --groups rotation,color --size 64
augury amortize imagenette64 --groups ventral,dorsal    paper C's HyperSimCLR
augury amortize photos/ -g "turn=rotation:30+flip,look=jitter+blur"
augury amortize mnist5k --method multitask              paper C's digits
augury amortize photos/ -g crop,color --run a --resume  continue it
"""

Groups = Annotated[
    str | None,
    o.option(
        "--groups -g",
        f"Invariances to span, separated by commas: {', '.join([*GROUPS, *OPERATIONS])}; or your own, such as "
        "turn=rotation:30+flip.",
        o.METHOD,
    ),
]
Method = Annotated[
    str,
    o.option(
        "--method -m",
        "; ".join(f"{name}: {what}" for name, what in METHODS.items()) + ". Default: contrastive.",
        o.METHOD,
        complete=METHODS,
    ),
]
Encoder = Annotated[
    str | None,
    o.option(
        "--encoder",
        "; ".join(f"{name}: {row.description}" for name, row in ENCODERS.items())
        + ". Default: resnet10_16; conv16 for multitask.",
        o.METHOD,
        complete=ENCODERS,
    ),
]


def amortize(
    data: o.Data,
    groups: Groups = None,
    method: Method = "contrastive",
    encoder: Encoder = None,
    variant: o.Variant = None,
    subset: o.Subset = None,
    size: o.Size = None,
    kind: o.Kind = None,
    skip_bad: o.SkipBad = None,
    epochs: Annotated[int | None, o.epochs(f"{AmortizeConfig.epochs}")] = None,
    batch: Annotated[int | None, o.batch(AmortizeConfig.batch)] = None,
    seed: o.Seed = None,
    device: o.Device = None,
    devices: o.Devices = None,
    set_: o.Set = None,
    run: o.Run = None,
    overwrite: o.Overwrite = False,
    resume: o.Resume = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check the settings, call `augury.amortize`, and show what it returns."""
    reading = o.given(locals(), o.READING)
    settings = o.given(locals(), ("encoder", "epochs", "batch", "device", "seed"))
    settings |= pairs(set_, "setting", "rate=0.001", settings_of(AmortizeConfig))
    first = is_first()
    if encoder is not None:
        choose("encoder", encoder, ENCODERS)
    AmortizeConfig.for_method(method, **settings)
    if groups is None and method == "contrastive":
        raise InputError("--groups must name the invariances to span, such as --groups rotation,color.")
    if groups is not None:
        parse_groups(groups)
    name = f"{Path(data).stem or 'data'}-extractor"
    folder = folder_for(run, name, overwrite=overwrite, resume=resume) if first else Path()
    with interruptible(f"The same command with --run {folder} --resume continues from the last checkpoint."):
        from augury.data.load import load
        from augury.data.unlabelled import load_images
        from augury.methods.hyper.amortize import amortize

        fabric = launched(devices, AmortizeConfig.for_method(method, **settings).device)
        with sharing_errors(fabric):
            images = read_data(load if method == "multitask" else load_images, data, quiet, **reading)
        saved = amortize(
            images, groups, method, out=folder, overwrite=overwrite, resume=resume, callbacks=live_bar(quiet),
            fabric=fabric, **settings
        ).saved  # fmt: skip
    if not first:
        return
    report = leave_report(folder)
    if json:
        facts = {"encoder": saved.network, "features": saved.n_outputs, **vars(saved.pretraining)}
        whole = {"extractor": str(folder / MODEL), "groups": list(saved.groups), **facts}
        print_json({**whole, "skipped": len(images.skipped), "report": str(report)})
        return
    out.print(summary(saved))
    if not quiet:
        say(f"The extractor is {folder / MODEL}, its report {report}")


def summary(saved: "SavedModel") -> Group:
    """Return what is shown of an extractor."""
    known = saved.pretraining
    assert known is not None
    title = "Similarity of an image and its view (cosine of their features)"
    columns = ("group", "transformations", "entry 0", "entry 1", "two images: 0", "1")
    rows = [
        [name, known.transformations[name]]
        + [f"{found[key]:.2f}" for key in ("at_0", "at_1", "random_at_0", "random_at_1")]
        for name, found in known.invariance.items()
    ]
    facts = f"{saved.network}, {plural(saved.n_outputs, 'feature')}, {plural(known.images, 'image')}"
    return Group(
        table(title, columns, rows, left=2), f"{facts}, {plural(known.epochs, 'epoch')}, {known.seconds:.0f} s"
    )
