"""What `augury learn` does once its options are known to be sound; loads torch."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from augury.cli.asked import Asked
from augury.cli.bars import LiveBar
from augury.cli.console import err, out, print_json
from augury.cli.reporting import leave_report
from augury.cli.tables import summary
from augury.core.errors import InputError
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.methods.learn import learn
from augury.records.results import Invariance
from augury.training.exhibit import leave_beside
from augury.training.progress import Progress, TensorBoard
from augury.training.run_folder import BASELINE, RunFolder


def carry_out(
    asked: Asked, folder: Path, *, overwrite: bool, resume: bool, as_json: bool, quiet: bool
) -> None:
    """Read the data, train, and show what was learned."""
    watch = _watchers(asked, quiet)
    data = read(asked, quiet)
    again: dict[str, Any] = {"overwrite": overwrite, "resume": resume}
    settings = settings_for(asked, data) | again
    learned = learn(data, method=asked.method, run=folder, callbacks=watch(""), **settings)
    runs = [learned.invariance]
    if asked.baseline:
        shared = {name: getattr(learned.config, name) for name in SHARED}
        plain = learn(
            data, method="plain", run=folder / BASELINE, callbacks=watch(BASELINE), **again, **shared
        )
        with_evidence = replace(runs[0], log_evidence_without=plain.invariance.log_evidence)
        RunFolder(folder).write(with_evidence)
        runs = [with_evidence, plain.invariance]
        if learned.transform is not None:
            leave_beside(folder, "plain", plain.model, learned.transform, data)
    report = leave_report(folder)
    if as_json:
        print_json(as_object(runs, len(data.skipped), report))
        return
    out.print(summary(runs))
    if not quiet:
        out.print(f"The run is in {folder}, its report in {report}", highlight=False, soft_wrap=True)


def _watchers(asked: Asked, quiet: bool) -> Callable[[str], list[Progress]]:
    """Return what makes the callbacks of a run: a bar, and TensorBoard's files in a folder of that name."""

    def make(name: str) -> list[Progress]:
        bar: list[Progress] = [] if quiet else [LiveBar(err)]
        return bar if asked.tensorboard is None else [*bar, TensorBoard(asked.tensorboard / name)]

    return make


def read(asked: Asked, quiet: bool) -> Dataset:
    """Read the data, and say how far it is."""
    if quiet:
        return load(asked.data, **asked.reading)
    with err.status(f"reading {asked.data}") as status:

        def show(what: str, done: int, total: int) -> None:
            status.update(f"{what} {done}/{total}" if total else what)

        data = load(asked.data, progress=show, **asked.reading)
    if data.skipped:
        count = "1 file" if len(data.skipped) == 1 else f"{len(data.skipped)} files"
        err.print(
            f"passed over {count} that could not be read, such as {data.skipped[0]}",
            style="yellow",
            soft_wrap=True,
        )
    return data


def settings_for(asked: Asked, data: Dataset) -> dict[str, Any]:
    """Return the settings of the run; those of a policy are known only when the inputs are."""
    policy = asked.policy
    if policy is None:
        return asked.settings
    if policy.kind != data.kind:
        raise InputError(f"the policy is for data of kind '{policy.kind}'; these are of kind '{data.kind}'.")
    own = {"generators": tuple(policy.widths), "widths": policy.widths_for(data.input_shape)}
    return {**asked.settings, **own, "sampling": asked.settings.get("sampling", policy.sampling)}


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


def as_object(runs: list[Invariance], skipped: int, report: Path) -> dict[str, Any]:
    """Return what --json prints."""
    baseline = None
    if len(runs) > 1:
        baseline = {
            name: getattr(runs[1], name)
            for name in ("method", "test_accuracy", "test_error", "log_evidence", "seconds", "run")
        }
    return {**runs[0].to_json(), "baseline": baseline, "skipped": skipped, "report": str(report)}
