"""`augury learn`: everything that can be refused is refused before torch is loaded."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from augury.cli import console as c
from augury.cli import options as o
from augury.cli.processes import is_first, launched, sharing_errors
from augury.cli.settings import LearnRequest, merge, pairs, settings_of, widths
from augury.config.learn import LearnConfig
from augury.core.errors import InputError
from augury.records.results import Invariance
from augury.report.headline import headline
from augury.training.run_folder import folder_for
from augury.transforms.vocabulary import WORDS

if TYPE_CHECKING:
    from augury.data.dataset import Dataset
    from augury.methods.forecast import Forecast

HELP = """
Learn which transformations do not change the labels, and how far.

The widths are learned from the training data while the network trains:
no validation set, no search. A run writes config.json, metrics.jsonl,
checkpoint/, model.safetensors, invariance.json, views/ and report.html
to its folder.

\b
augury learn mnist5k --variant rotated            digits with a planted rotation
augury learn my_photos/ --model resnet_8_16       a folder, one sub-folder per class
augury learn data.npz -g rotation,flip_x          only some transformations
augury learn mnist5k -m augmented -w rotation=30  fixed widths
augury learn mnist5k --policy runs/a              widths that a run learned
augury learn mnist5k --run runs/a --resume        continue a stopped run
augury learn my_photos/ --dry-run                 how much memory, how long
augury learn --config run.toml --epochs 50        a settings file; flags win
augury learn mnist5k --print-config > run.toml    and back into one
augury learn mnist5k --json > result.json         for a script
augury learn my_photos/ --devices 8               eight processes, the answer of one
"""

Generators = Annotated[
    list[str] | None,
    o.option(
        "--generators -g",
        "Transformations to learn: affine, rotation, translation, scale, color, flip_x, C4, ...; separated "
        "by commas. Default: all six affine generators on images, and flip_x if they are in colour.",
        o.METHOD,
        complete=WORDS["image"],
    ),
]
Weights = Annotated[
    str | None,
    o.option(
        "--weights",
        "Begin with the network of another run: its folder. Layers of other shapes, such as a head for other classes, "
        "begin anew.",
        o.METHOD,
    ),
]
Freeze = Annotated[
    str | None,
    o.option(
        "--freeze",
        "Layers that stay as they are, by the beginnings of their names, separated by commas; trunk for all but the "
        "last layer.",
        o.METHOD,
    ),
]
Slight = Annotated[
    list[str] | None,
    o.option(
        "--slight",
        "The width below which a transformation counts as none in the verdict, such as rotation=10; may be "
        "repeated. Default: 6 degrees, a tenth of the scale, 5 % of the image; a trained network is called "
        "invariant from 1.5 times that on.",
        o.METHOD,
    ),
]
Policy = Annotated[
    Path | None,
    o.option(
        "--policy",
        "Take generators and widths from a policy.json (augury export --to json) or a run's folder.",
        o.METHOD,
    ),
]
Baseline = Annotated[
    bool | None, o.option("--baseline/--no-baseline", "Also train the plain network, to compare. Default: yes.")
]
Seeds = Annotated[
    int,
    o.option(
        "--seeds", "Train so many times with consecutive seeds, and combine what they say of each width.", o.METHOD
    ),
]
Tensorboard = Annotated[Path | None, o.option("--tensorboard", "Write curves for TensorBoard to this folder.")]
Config = Annotated[
    Path | None, o.option("--config", "A TOML file with any option and any setting by its name. Flags win over it.")
]
PrintConfig = Annotated[bool, o.option("--print-config", "Print all settings as TOML that --config reads, and exit.")]
DryRun = Annotated[
    bool, o.option("--dry-run", "Time a few steps, show what would be done, its memory and time, and exit.")
]

FLAGS = ["data", "method", "model", "weights", "freeze", "samples", "epochs", "batch", "device", "devices", "baseline"]


def learn(
    data: o.DataIfAny = None,
    variant: o.Variant = None,
    subset: o.Subset = None,
    test: o.Test = None,
    test_fraction: o.TestFraction = None,
    size: o.Size = None,
    task: o.Task = None,
    kind: o.Kind = None,
    skip_bad: o.SkipBad = None,
    method: o.Method = None,
    model: o.Model = None,
    weights: Weights = None,
    freeze: Freeze = None,
    generators: Generators = None,
    width: o.Widths = None,
    slight: Slight = None,
    policy: Policy = None,
    samples: o.Samples = None,
    epochs: Annotated[int | None, o.epochs(f"{LearnConfig.epochs}, or the method's own")] = None,
    batch: Annotated[int | None, o.batch(LearnConfig.batch)] = None,
    seed: o.Seed = None,
    seeds: Seeds = 1,
    device: o.Device = None,
    devices: o.Devices = None,
    set_: o.Set = None,
    run: o.Run = None,
    overwrite: o.Overwrite = False,
    resume: o.Resume = False,
    baseline: Baseline = None,
    tensorboard: Tensorboard = None,
    config: Config = None,
    print_config: PrintConfig = False,
    dry_run: DryRun = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Merge the settings, call `augury.learn`, and show what it returns."""
    flags = o.given(locals(), (*o.READING, *FLAGS))
    flags |= {name: str(path) for name, path in o.given(locals(), ("policy", "run", "tensorboard")).items()}
    words = [word for part in generators or [] for word in part.split(",") if word]
    flags |= {"generators": words or None, "widths": widths(width, quiet) or None}
    flags |= {"slight": widths(slight, quiet) or None}
    flags |= pairs(set_, "setting", "rate=0.001", settings_of(LearnConfig))
    if seeds < 1:
        raise InputError(f"--seeds must be at least 1; got {seeds}.")
    request = merge(flags, config)
    first = is_first()
    if print_config:
        print(request.as_toml(), end="")
        return
    again = {"overwrite": overwrite, "resume": resume}
    parts = (Path(request.values["data"]).stem or "data", request.values.get("variant"), request.method)
    name = "-".join(word for word in parts if word)
    folder = folder_for(request.folder("run"), name, several=seeds > 1, **again) if first else Path()
    with c.interruptible(f"The same command with --run {folder} --resume continues from the last checkpoint."):
        if dry_run:
            _forecast(request, folder, as_json=json, quiet=quiet)
        else:
            fabric = launched(request.values.get("devices"), request.config.device)
            options = {**again, "baseline": request.baseline, "fabric": fabric}
            train = partial(_learn_seeds, seeds=seeds) if seeds > 1 else _learn
            train(request, folder, options, as_json=json, quiet=quiet)


def _read(request: LearnRequest, quiet: bool) -> "tuple[Dataset, dict[str, Any]]":
    """Return the data, and the settings: those of a policy depend on the inputs."""
    from augury.data.load import load
    from augury.methods.prepare import image_side

    side = image_side(request.settings.get("model"), request.method)
    data = c.read_data(load, request.values["data"], quiet, side=side, **request.reading)
    own = {} if request.policy is None else request.policy.settings(data.kind, data.input_shape)
    return data, own | request.settings


def _learn(request: LearnRequest, folder: Path, again: dict[str, Any], *, as_json: bool, quiet: bool) -> None:
    from augury.methods.learn import learn
    from augury.training.progress import TensorBoard

    board = request.folder("tensorboard")
    callbacks = [
        *c.live_bar(quiet, request.baseline),
        *([TensorBoard(board)] if board is not None and is_first() else []),
    ]
    with sharing_errors(again["fabric"]):
        data, settings = _read(request, quiet)
    learned = learn(data, method=request.method, run=folder, callbacks=callbacks, **again, **settings)
    if not is_first():
        return
    report = c.leave_report(folder)
    found, plain = learned.invariance, learned.baseline and learned.baseline.invariance
    if as_json:
        c.print_json({
            **found.to_json(),
            "baseline": plain and {name: getattr(plain, name) for name in COMPARED},
            "skipped": len(data.skipped),
            "report": str(report),
        })
        return
    c.out.print(summary([found, plain] if plain else [found]))
    if not quiet:
        c.say(f"The run is in {folder}, its report in {report}")


def _learn_seeds(
    request: LearnRequest, folder: Path, again: dict[str, Any], *, seeds: int, as_json: bool, quiet: bool
) -> None:
    from augury.methods.seeds import learn_seeds

    with sharing_errors(again["fabric"]):
        data, settings = _read(request, quiet)
    options = {**again, **settings, "method": request.method, "callbacks": c.live_bar(quiet, request.baseline)}
    trained = learn_seeds(data, seeds, run=folder, **options)
    runs = [learned.invariance for learned in trained.runs]
    if as_json:
        widths = {name: width.to_json() for name, width in trained.widths.items()}
        c.print_json({"widths": widths, "runs": [run.to_json() for run in runs]})
        return
    rows = [[Path(run.run or "").name, *(c.number(w.value, w.unit) for w in run.widths.values())] for run in runs]
    c.out.print(c.table("Each training", ["run", *trained.widths], rows))
    c.out.print(Group(c.widths_table(trained.widths), _scores(runs)))
    if not quiet:
        c.say(f"The runs are in {folder}, each with its report; intervals include the spread over {seeds} trainings.")


COMPARED = ("method", "test_accuracy", "test_error", "log_evidence", "seconds", "run")
"""Fields of the baseline in --json."""


def summary(runs: list[Invariance]) -> Group:
    """Return what is shown of a run and of its baseline."""
    found = Text(headline(runs[0]).striptags(), style="bold")
    widths = [c.widths_table(runs[0].widths)] if runs[0].widths and runs[0].method != "plain" else []
    return Group(found, *widths, _scores(runs), *(Text(note) for run in runs for note in run.notes))


def _scores(runs: list[Invariance]) -> Table:
    regression = any(run.test_error is not None for run in runs)
    evidence = any(run.log_evidence is not None for run in runs)
    columns = ["method", "network", "test error (RMSE)" if regression else "test accuracy"]
    rows = []
    for run in runs:
        score = c.percent(run.test_accuracy) if run.test_error is None else f"{run.test_error:.4g}"
        middle = [f"{run.log_evidence:.1f}" if run.log_evidence is not None else "-"] if evidence else []
        rows.append([run.method, run.model, score, *middle, f"{run.seconds:.0f}"])
    return c.table("On the test set", [*columns, *(["log evidence"] if evidence else []), "seconds"], rows, left=2)


def _forecast(request: LearnRequest, folder: Path, *, as_json: bool, quiet: bool) -> None:
    """Take a few steps of every run, and show what all of it would cost."""
    from augury.methods.forecast import forecast

    data, settings = _read(request, quiet)
    runs = [forecast(data, method=request.method, **settings)]
    if request.baseline:
        runs.append(forecast(data, method="plain", **request.config.shared() | {"model": runs[0].model}))
    if as_json:
        total = sum(run.seconds for run in runs)
        c.print_json({"run": str(folder), "seconds": total, "runs": [run.to_json() for run in runs]})
        return
    c.out.print(_forecast_table(runs))
    c.say(f"The run would go to {folder}. Nothing was written.")
    if not quiet:
        c.note("Estimated from a few steps on this machine under its present load.", style="dim")


def _forecast_table(runs: "list[Forecast]") -> Table:
    made = Table(title="What would be done", title_justify="left", show_header=False)
    rows = {
        "method": [run.method for run in runs],
        "network": [f"{run.model}, {run.weights:,} weights" for run in runs],
        "data": [f"{run.data}: {run.train:,} to train on, {run.test:,} to test" for run in runs],
        "widths": [", ".join(run.widths) or "-" for run in runs],
        "training": [f"{c.plural(run.epochs, 'epoch')} of {c.plural(run.steps, 'step')}" for run in runs],
        "evidence": [c.plural(run.climbs, "step") if run.climbs else "-" for run in runs],
        "device": [run.device for run in runs],
        "memory": [f"about {c.gigabytes(run.memory)}" for run in runs],
        "time": [f"about {c.duration(run.seconds)}" for run in runs],
    }
    for name, values in rows.items():
        made.add_row(name, *values)
    return made
