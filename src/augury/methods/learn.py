"""`augury.learn`: from data, a network and the name of a method to what was learned."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from torch import nn

from augury.config.learn import DEFAULT_METHOD, LearnConfig
from augury.data.dataset import Dataset
from augury.methods.prepare import CUSTOM, prepare
from augury.records.results import Invariance
from augury.training.exhibit import leave_exhibits
from augury.training.loop import Fit, fit
from augury.training.progress import Progress, together
from augury.training.run_folder import RunFolder, open_run
from augury.training.saved_model import describe_learned, save_model
from augury.transforms.base import Transform


@dataclass(frozen=True, eq=False)
class Learned:
    """What a run leaves in the hands of its caller."""

    invariance: Invariance
    """Widths in their units, scores, evidence: plain data."""
    model: nn.Module
    """The trained model, in evaluation mode: an `OrbitAverage`, or the bare network of method "plain"."""
    metrics: list[dict[str, Any]]
    """A line for each epoch."""
    epoch: int
    """The epoch whose state was kept."""
    config: LearnConfig
    """The settings, with everything filled in."""
    transform: Transform | None = None
    """The distribution over transformations, learned or given, where the method has one."""


def learn(
    data: Any,
    model: str | nn.Module | None = None,
    method: str = DEFAULT_METHOD,
    *,
    transform: Transform | None = None,
    run: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    callbacks: Progress | Sequence[Progress] = (),
    **settings: Any,
) -> Learned:
    """Train a network and learn which invariances the data have.

    Parameters
    ----------
    data
        A `Dataset`, or anything that `augury.data.load.load` reads: a name, a folder, an .npz, arrays.
    model
        A network's name, or a module of your own (trained in place); chosen by the kind of data unless told.
    method
        A key of `augury.methods.registry.METHODS`.
    transform
        A transformation of your own; made from the setting `generators` unless told.
    run
        Folder for settings, metrics, checkpoints, the model and what was learned; nothing is written without.
    overwrite
        Replace a run that stands in the folder.
    resume
        Continue a run that stands in the folder, to the bits it would have reached.
    callbacks
        Whoever watches, one or several: told of every step and every epoch, in this order.
    settings
        Any field of `LearnConfig`: epochs=100, samples=20, generators=("rotation",), ...

    Returns
    -------
    Learned
        What was learned, and the trained model.
    """
    ready = prepare(data, model, method, transform, settings)
    dataset, config, learner = ready.data, ready.config, ready.learner
    folder = None
    if run is not None:
        folder = open_run(Path(run), _asked(dataset, config), overwrite=overwrite, resume=resume)
    result = fit(learner, dataset, config, folder, together(callbacks))
    invariance = _invariance(dataset, config, result, folder)
    if folder is not None:
        save_model(folder.model, learner.model, describe_learned(learner.model, dataset, config))
        folder.write(invariance)
        leave_exhibits(folder.path, learner.model, learner.transform, dataset, result.outputs, result.epoch)
    return Learned(invariance, learner.model, result.rows, result.epoch, config, learner.transform)


def _asked(data: Dataset, config: LearnConfig) -> dict[str, Any]:
    """Return what `config.json` holds; a continued run must be asked the same."""
    digest = sha256(data.x_train.contiguous().numpy().tobytes() + data.y_train.contiguous().numpy().tobytes())
    facts = {
        "source": data.source,
        "train": len(data.x_train),
        "test": len(data.x_test),
        "input_shape": list(data.input_shape),
        "fingerprint": f"sha256:{digest.hexdigest()}",
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
        log_evidence_without=result.findings.log_evidence_without,
        seconds=result.seconds,
        run=None if folder is None else str(folder.path),
        notes=result.findings.notes,
    )
