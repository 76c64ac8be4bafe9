"""What `augury learn` does once its options are known to be sound; loads torch."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from augury.cli.bars import LiveBar
from augury.cli.console import err, out, print_json
from augury.cli.reporting import leave_report
from augury.cli.tables import summary
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.methods.learn import Learned, learn
from augury.models.orbit import OrbitAverage
from augury.records import Invariance
from augury.training.exhibit import leave_beside
from augury.training.run_folder import BASELINE, RunFolder


@dataclass(frozen=True)
class Request:
    """All that was asked for."""

    source: str
    """The data."""
    reading: dict[str, Any]
    """How to read them: keywords of `load`."""
    method: str
    """The method."""
    settings: dict[str, Any]
    """Fields of `LearnConfig`, the network's name among them."""
    folder: Path
    """The run's folder."""
    overwrite: bool
    """Replace a run that stands there."""
    resume: bool
    """Continue a run that stands there."""


def carry_out(request: Request, *, baseline: bool, as_json: bool, quiet: bool) -> None:
    """Read the data, train, and show what was learned.

    Parameters
    ----------
    request
        What was asked for.
    baseline
        Train the plain network too.
    as_json
        Print one JSON object instead of tables.
    quiet
        No progress, no remarks.
    """
    data = _read(request, quiet)
    learned = _train(request, data, request.method, request.settings, request.folder, quiet)
    runs = [learned.invariance]
    if baseline:
        shared = {name: getattr(learned.config, name) for name in SHARED}
        plain = _train(request, data, "plain", shared, request.folder / BASELINE, quiet)
        with_evidence = replace(runs[0], log_evidence_without=plain.invariance.log_evidence)
        RunFolder(request.folder).write_invariance(with_evidence)
        runs = [with_evidence, plain.invariance]
        if isinstance(learned.model, OrbitAverage):
            leave_beside(request.folder, "plain", plain.model, learned.model.transform, data)
    report = leave_report(request.folder)
    if as_json:
        print_json(as_object(runs, len(data.skipped), report))
        return
    out.print(summary(runs))
    if not quiet:
        out.print(f"The run is in {request.folder}, its report in {report}", highlight=False, soft_wrap=True)


def _read(request: Request, quiet: bool) -> Dataset:
    if quiet:
        return load(request.source, **request.reading)
    with err.status(f"reading {request.source}") as status:

        def show(what: str, done: int, total: int) -> None:
            status.update(f"{what} {done}/{total}" if total else what)

        data = load(request.source, progress=show, **request.reading)
    if data.skipped:
        count = "1 file" if len(data.skipped) == 1 else f"{len(data.skipped)} files"
        err.print(
            f"passed over {count} that could not be read, such as {data.skipped[0]}",
            style="yellow",
            soft_wrap=True,
        )
    return data


SHARED = (
    "model",
    "generators",
    "epochs",
    "batch",
    "optimizer",
    "rate",
    "rate_end",
    "weight_decay",
    "device",
    "seed",
    "burn_in",
    "evidence",
    "evidence_every",
    "evidence_images",
    "structure",
    "output",
    "positions",
    "prior",
    "delta",
    "delta_rate",
    "delta_steps",
    "batchnorm",
    "evaluate_every",
    "evaluate_images",
)
"""Settings that the baseline takes from the method: the same network, trained as long in the same way."""


def _train(
    request: Request, data: Dataset, method: str, settings: dict[str, Any], folder: Path, quiet: bool
) -> Learned:
    return learn(
        data,
        method=method,
        run=folder,
        overwrite=request.overwrite,
        resume=request.resume,
        callbacks=() if quiet else (LiveBar(err),),
        **settings,
    )


def as_object(runs: list[Invariance], skipped: int, report: Path) -> dict[str, Any]:
    """Return what --json prints.

    Parameters
    ----------
    runs
        The method first, then its baseline, where there is one.
    skipped
        How many files were left out.
    report
        Where the report is.

    Returns
    -------
    dict
        The method's record, its baseline's scores, the number of files left out, and the report's path.
    """
    baseline = None
    if len(runs) > 1:
        baseline = {
            name: getattr(runs[1], name)
            for name in ("method", "test_accuracy", "test_error", "log_evidence", "seconds", "run")
        }
    return {**runs[0].to_json(), "baseline": baseline, "skipped": skipped, "report": str(report)}
