"""What `augury learn` does once its options are known to be sound; loads torch."""

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
from augury.training.progress import Progress, TensorBoard


def carry_out(
    asked: Asked, folder: Path, *, overwrite: bool, resume: bool, as_json: bool, quiet: bool
) -> None:
    """Read the data, train, and show what was learned."""
    watchers: list[Progress] = [] if quiet else [LiveBar(err)]
    if asked.tensorboard is not None:
        watchers.append(TensorBoard(asked.tensorboard))
    data = read(asked, quiet)
    learned = learn(
        data,
        method=asked.method,
        run=folder,
        overwrite=overwrite,
        resume=resume,
        baseline=asked.baseline,
        callbacks=watchers,
        **settings_for(asked, data),
    )
    runs = [one.invariance for one in (learned, learned.baseline) if one is not None]
    report = leave_report(folder)
    if as_json:
        print_json(as_object(runs, len(data.skipped), report))
        return
    out.print(summary(runs))
    if not quiet:
        out.print(f"The run is in {folder}, its report in {report}", highlight=False, soft_wrap=True)


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


def as_object(runs: list[Invariance], skipped: int, report: Path) -> dict[str, Any]:
    """Return what --json prints."""
    baseline = None
    if len(runs) > 1:
        baseline = {
            name: getattr(runs[1], name)
            for name in ("method", "test_accuracy", "test_error", "log_evidence", "seconds", "run")
        }
    return {**runs[0].to_json(), "baseline": baseline, "skipped": skipped, "report": str(report)}
