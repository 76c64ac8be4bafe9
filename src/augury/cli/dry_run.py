"""`augury learn --dry-run`: what would be done, the memory it takes and about how long; loads torch."""

from pathlib import Path

from rich.table import Table

from augury.cli.asked import Asked
from augury.cli.console import err, out, print_json
from augury.cli.environment import gigabytes
from augury.cli.learning import read, settings_for
from augury.methods.forecast import Forecast, forecast


def show_forecast(asked: Asked, folder: Path, *, as_json: bool, quiet: bool) -> None:
    """Take a few steps of every run, and say what all of it would cost."""
    data = read(asked, quiet)
    runs = [forecast(data, method=asked.method, **settings_for(asked, data))]
    if asked.baseline:
        runs.append(forecast(data, method="plain", **{**asked.config.shared(), "model": runs[0].model}))
    if as_json:
        total = sum(run.seconds for run in runs)
        print_json({"run": str(folder), "seconds": total, "runs": [run.to_json() for run in runs]})
        return
    out.print(forecast_table(runs))
    out.print(f"The run would go to {folder}. Nothing was written.", highlight=False, soft_wrap=True)
    if not quiet:
        err.print(
            "Reckoned from a few steps on this machine as it is now; another load, another time.", style="dim"
        )


def forecast_table(runs: list[Forecast]) -> Table:
    """Return what would be done, a column for each run."""
    table = Table(title="What would be done", title_justify="left", show_header=False)
    table.add_column()
    for _ in runs:
        table.add_column(overflow="fold")
    rows = {
        "method": [run.method for run in runs],
        "network": [f"{run.model}, {run.weights:,} weights" for run in runs],
        "data": [f"{run.data}: {run.train:,} to train on, {run.test:,} to test" for run in runs],
        "widths": [", ".join(run.widths) or "-" for run in runs],
        "training": [f"{run.epochs} epochs of {run.steps} steps" for run in runs],
        "evidence": [f"{run.climbs} climbs" if run.climbs else "-" for run in runs],
        "device": [run.device for run in runs],
        "memory": [f"about {gigabytes(run.memory)}" for run in runs],
        "time": [f"about {duration(run.seconds)}" for run in runs],
    }
    for name, values in rows.items():
        table.add_row(name, *values)
    return table


def duration(seconds: float) -> str:
    """Write a time as a person would."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
