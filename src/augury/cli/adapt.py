"""`augury adapt`: everything that can be refused is refused before torch is loaded."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Group
from rich.table import Table
from rich.text import Text

from augury.cli import console as c
from augury.cli import options as o
from augury.cli.settings import pairs
from augury.config.hyper import CRITERIA, AdaptConfig
from augury.core.errors import InputError
from augury.records.results import Adaptation, entry_verdict

if TYPE_CHECKING:
    from augury.methods.hyper.adapt import Tell

HELP = """
Adapt an extractor to a new task: which invariances it needs, and a head.

The extractor stays as it is. The descriptor (how invariant to be to each
group) is chosen by the evidence of a linear head, in seconds and without a
validation set. With --run the adapted model is saved as a plain network.

\b
augury adapt runs/photos-extractor my_task/           one sub-folder per class
augury adapt runs/e faces.npz --task regression       numbers, not classes
augury adapt runs/e my_task/ --levels 2 --run runs/a  binary; keep the model
augury adapt runs/e my_task/ --descriptor rotation=1,color=0
augury adapt runs/e my_task/ --json > result.json     for a script
"""
COLOURS = {"invariant": "green", "sensitive": "red"}
BAR = 24  # characters of a full bar

Extractor = Annotated[Path, o.argument("EXTRACTOR", "What augury amortize made: its folder, or its .safetensors file.")]
Criterion = Annotated[
    str | None,
    o.option(
        "--criterion",
        f"What chooses the descriptor: {', '.join(CRITERIA)}. Default: evidence.",
        o.METHOD,
        complete=CRITERIA,
    ),
]
Levels = Annotated[
    int | None,
    o.option(
        "--levels",
        "Values that an entry may take: 2 binary, 3 ternary, ...; fewer give a tighter bound. Default: any.",
        o.METHOD,
    ),
]
Descriptor = Annotated[
    str | None, o.option("--descriptor", "Fix it, such as rotation=1,color=0; only the head is learned.", o.METHOD)
]
Run = Annotated[Path | None, o.option("--run", "Folder for the adapted model and its report. Default: none.")]


def adapt(
    extractor: Extractor,
    data: o.Data,
    variant: o.Variant = None,
    subset: o.Subset = None,
    test: o.Test = None,
    test_fraction: o.TestFraction = None,
    size: o.Size = None,
    task: o.Task = None,
    kind: o.Kind = None,
    skip_bad: o.SkipBad = None,
    criterion: Criterion = None,
    levels: Levels = None,
    descriptor: Descriptor = None,
    images: Annotated[int | None, o.images("examples that choose the descriptor", f"{AdaptConfig.images}")] = None,
    seed: o.Seed = None,
    device: o.Device = None,
    run: Run = None,
    overwrite: o.Overwrite = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check the settings, call `augury.adapt`, and show what it returns."""
    reading = o.given(locals(), o.READING)
    settings = o.given(locals(), ("criterion", "levels", "images", "device", "seed"))
    AdaptConfig.of(**settings)
    entries = descriptor and pairs(descriptor.split(","), "a descriptor", "rotation=1,color=0")
    place = extractor.expanduser()
    if not place.exists():
        raise InputError(f"no extractor at {extractor}. Make one: augury amortize DATA --groups ...")
    with c.interruptible():
        from augury.data.load import load
        from augury.methods.hyper.adapt import adapt, load_extractor

        net = load_extractor(place)  # refused before a long read
        dataset = c.read_data(load, data, quiet, **reading)
        with _watching(quiet) as tell:
            found = adapt(
                net, dataset, origin=str(place), descriptor=entries or None, run=run, overwrite=overwrite,
                tell=tell, **settings
            ).adaptation  # fmt: skip
        report = None if run is None else str(c.leave_report(run))
    if json:
        c.print_json({**found.to_json(), "skipped": len(dataset.skipped), "report": report})
        return
    c.out.print(summary(found, dataset.n_outputs))
    if run is not None and not quiet:
        c.say(f"The adapted model is in {run}, its report in {report}")


@contextmanager
def _watching(quiet: bool) -> "Iterator[Tell | None]":
    if quiet:
        yield None
        return
    with c.err.status("adapting") as status:

        def tell(descriptor: Mapping[str, float], value: float) -> None:
            entries = ", ".join(f"{name} {entry:.2f}" for name, entry in descriptor.items())
            status.update(f"tried {entries}: {value:.1f}")

        yield tell


def summary(found: Adaptation, n_outputs: int) -> Group:
    """Return what is shown of an adaptation."""
    words = Text(f"This task: {found.words}.", style="bold")
    return Group(_bars(found), words, "", _facts(found, n_outputs), "", _bound(found))


def _bars(found: Adaptation) -> Table:
    by = "as given" if found.criterion == "given" else f"chosen by {found.criterion}"
    title = f"Descriptor, {by}" + ("" if found.levels is None else f", {found.levels} levels")
    rows = []
    for name, value in found.descriptor.items():
        full = round(BAR * value)
        verdict = entry_verdict(value, found.margins.get(name, math.inf))
        colour = COLOURS.get(verdict, "yellow")
        if verdict == "undecided":
            verdict = f"undecided: {abs(found.margins[name]):.1f} nats"
        bar = Text("█" * full, colour, no_wrap=True).append("░" * (BAR - full), "dim")
        rows.append([name, bar, f"{value:.2f}", verdict])
    scale = "sensitive".ljust(BAR - len("invariant")) + "invariant"
    return c.table(title, ("group", scale, "", ""), rows, left=4, frame=False)


def _facts(found: Adaptation, n_outputs: int) -> Table:
    what = "classes" if found.task == "classification" else "numbers"
    rows = {
        "head": f"{found.features} features to {n_outputs} {what}, prior precision {found.delta:.3g}",
        found.score_name: f"{_score(found, found.score)} ({found.scored_on})",
    }
    if found.scored_on == "test" and found.held_out is not None:
        rows["held-out estimate"] = f"{_score(found, found.held_out)} (from the training examples)"
    rows["on training"] = f"{_score(found, found.train_score)} of {found.N} examples"
    rows["log evidence"] = "-" if found.log_evidence is None else f"{found.log_evidence:.1f}"
    rows["seconds"] = f"{found.seconds:.1f}"
    return c.facts_table(rows)


def _score(found: Adaptation, value: float | None) -> str:
    return c.percent(value) if value is None or found.score_name == "accuracy" else f"{value:.3f}"


def _bound(found: Adaptation) -> Table:
    b = found.bound
    title = f"Bound on the {b.loss} loss, with {100 * (1 - b.failure):g} % confidence"
    total = f"{b.total:.3f}" + ("" if b.total < 1 else " (vacuous)")
    columns = ("training", "head: 2XB/sqrt(n)", "choice of descriptor", "together")
    row = [f"{b.risk:.3f}", f"{b.complexity:.3f}", f"{b.choice:.3f}", total]
    return c.table(title, columns, [row], left=0, frame=False)
