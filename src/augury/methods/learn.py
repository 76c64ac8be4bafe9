"""`augury.learn`: learn the invariances of data with a network and a method."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from augury.config.learn import DEFAULT_METHOD, LearnConfig
from augury.config.synonyms import synonyms
from augury.core.errors import InputError
from augury.core.world import World, check_precision, world_of
from augury.data.dataset import Dataset
from augury.data.rows import fingerprint
from augury.methods.forecast import Remaining
from augury.methods.prepare import Prepared, prepare
from augury.models.units import in_units
from augury.records.results import Invariance
from augury.records.saved import CUSTOM
from augury.report.page import write_report
from augury.training.exhibit import write_beside, write_exhibits
from augury.training.loop import Fit, fit
from augury.training.progress import Progress, together
from augury.training.run_folder import BASELINE, RunFolder, locked, open_run
from augury.training.saved_model import describe_learned, save_model
from augury.transforms.base import Transform

ROUNDED = ("plain", "lila", "last_layer", "augmented", "data_augmented")
"""Methods whose steps on the weights may be in bf16: no width and no posterior is learned by these steps."""


@dataclass(frozen=True, eq=False)
class Learned:
    """What a run learned, and the trained model."""

    invariance: Invariance
    """Widths in their units, scores, evidence: plain data."""
    model: nn.Module
    """The trained model, in evaluation mode: an `OrbitAverage`, or the bare network of method "plain". The outputs of
    a regression are in the units of the targets."""
    metrics: list[dict[str, Any]]
    """A line for each epoch."""
    epoch: int
    """The epoch whose state was kept."""
    config: LearnConfig
    """The settings, with everything filled in."""
    transform: Transform | None = None
    """The distribution over transformations, learned or given, if the method has one."""
    baseline: "Learned | None" = None
    """The plain network trained for comparison, if requested."""
    report: Path | None = None
    """The report of the run's folder, if there is a folder."""


@synonyms
def learn(
    data: Any,
    model: str | nn.Module | None = None,
    method: str = DEFAULT_METHOD,
    *,
    transform: Transform | None = None,
    run: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    baseline: bool = False,
    callbacks: Progress | Sequence[Progress] = (),
    fabric: Any = None,
    **settings: Any,
) -> Learned:
    """Train a network and learn the invariances of the data.

    Parameters
    ----------
    data
        A `Dataset`, or anything that `augury.load` reads: a name, a folder, an .npz, arrays, a map-style torch
        data set. Of a `DataLoader` the data set and the batch size are taken.
    model
        A network's name, or a module of your own (trained in place; of a regression, on standardised targets).
        Default: inferred from the kind of data.
    method
        A key of `augury.methods.registry.METHODS`.
    transform
        A transformation of your own. Default: made from the setting `generators`.
    run
        Folder for settings, metrics, checkpoints, the model, results and report. If omitted,
        nothing is written. With a folder, the test set is scored eight times during training (`evaluate_every`).
    overwrite, resume
        Replace the run in the folder, or continue it; it resumes bit for bit.
    baseline
        Also train the same network without invariance, for comparison; its files go to run/baseline.
    callbacks
        One or several, notified of every step and every epoch, in this order.
    fabric
        A launched `lightning_fabric.Fabric`, whose processes all make this call: they share every batch, and the answer
        is that of one process. The first writes the folder and notifies the callbacks.
    settings
        Any field of `augury.config.learn.LearnConfig`: epochs=100, generators=("rotation",), lr=0.01, ...

    Returns
    -------
    Learned
        What was learned, and the trained model.
    """
    if baseline and method == "plain":
        raise InputError("method 'plain' is the baseline itself; take another method, or baseline=False.")
    world = world_of(fabric)
    check_precision(world, f"method '{method}'", method in ROUNDED)
    folder, watcher = None if run is None else Path(run), together(() if world.rank else callbacks)
    again = {"overwrite": overwrite, "resume": resume}
    untrained = deepcopy(model) if baseline else None
    ready = prepare(data, model, method, transform, settings)
    if folder is not None and "evaluate_every" not in settings:
        ready = replace(ready, config=ready.config.scored_on_the_way())
    folder = None if world.rank else folder
    beside = _baseline(ready, untrained, transform) if baseline else None  # refused before training, if at all
    with locked(folder):
        learned = _train(ready, folder, watcher, world, **again)
        if beside is not None:
            place = None if folder is None else folder / BASELINE
            plain = _train(beside, place, watcher.for_baseline(), world, **again)
            learned = _compared(learned, plain, ready.data, folder)
        return learned if folder is None else replace(learned, report=write_report(folder))


def _train(
    ready: Prepared, run: Path | None, watcher: Progress, world: World, *, overwrite: bool, resume: bool
) -> Learned:
    """Train one network, and write everything but the report to its folder."""
    dataset, config, learner = ready.data, ready.config, ready.learner
    folder = None
    learner.join(world)
    with world.sharing_errors():
        if run is not None:
            folder = open_run(run, _asked(dataset, config), overwrite=overwrite, resume=resume)
    inside = dataset.standardised()
    result = fit(learner, inside, config, folder, together([watcher, Remaining(ready, watcher)]))
    model = in_units(learner.model, inside.target_mean, inside.target_scale)
    invariance = _invariance(dataset, config, result, folder)
    if folder is not None:
        save_model(folder.model, model, describe_learned(model, inside, config))
        folder.write(invariance)
        write_exhibits(folder.path, model, learner.transform, dataset, result.outputs, result.epoch)
    return Learned(invariance, model, result.rows, result.epoch, config, learner.transform)


def _baseline(ready: Prepared, untrained: str | nn.Module | None, transform: Transform | None) -> Prepared:
    """Return the same network, without any invariance, ready to train as long in the same way."""
    settings = ready.config.shared()
    name = settings.pop("model")
    net = untrained if isinstance(untrained, nn.Module) else name
    own = transform if ready.config.generators is None else None
    return prepare(ready.data, net, "plain", own, settings)


def _compared(learned: Learned, plain: Learned, data: Dataset, folder: Path | None) -> Learned:
    """Return the results with those of the baseline, and write the comparison to the folder."""
    invariance = replace(learned.invariance, log_evidence_without=plain.invariance.log_evidence)
    if folder is not None:
        RunFolder(folder).write(invariance)
        if learned.transform is not None:
            write_beside(folder, "plain", plain.model, learned.transform, data)
    return replace(learned, invariance=invariance, baseline=plain)


def _asked(data: Dataset, config: LearnConfig) -> dict[str, Any]:
    """Return what `config.json` holds; a run resumes only with the same."""
    facts = {
        "source": data.source,
        "train": len(data.x_train),
        "test": len(data.x_test),
        "input_shape": list(data.input_shape),
        "fingerprint": fingerprint(data.x_train, data.y_train),
        **({"targets": "standardised"} if data.task == "regression" else {}),
    }
    return {**config.to_json(), "data": facts}


def _invariance(data: Dataset, config: LearnConfig, result: Fit, folder: RunFolder | None) -> Invariance:
    planted = data.planted
    widths = {name: replace(w, planted=planted.get(name)) for name, w in result.findings.widths.items()}
    return Invariance(
        widths=widths,
        method=config.method,
        model=config.model or CUSTOM,
        data=data.source,
        test_accuracy=result.scores.get("test_accuracy"),
        test_error=result.scores.get("test_error"),
        log_evidence=result.findings.log_evidence,
        seconds=result.seconds,
        run=None if folder is None else str(folder.path),
        notes=result.findings.notes,
    )
