"""Curves over training: every width, then evidence, loss and score."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from augury.report.numbers import Number, amount, either_way, number, percent
from augury.report.plots import Line, Plot
from augury.training.run_folder import Run

CURVES = {
    "log_evidence": "Log evidence (nats)",
    "test_accuracy": "Test accuracy",
    "test_error": "Test error (RMSE)",
    "loss": "Training loss",
}
"""Metrics that have a plot."""


@dataclass(frozen=True)
class Series:
    """The metrics of a run, with its name and colour in the legend."""

    name: str
    rows: Sequence[dict[str, Any]]
    colour: int = 0
    dashed: bool = False

    def line(self, key: str) -> Line:
        have = [row for row in self.rows if row.get(key) is not None]
        return Line(self.name, [r["epoch"] for r in have], [r[key] for r in have], (), self.colour, self.dashed)

    def width(self, name: str) -> Line:
        have = [row for row in self.rows if name in row.get("widths", {})]
        return Line(self.name, [r["epoch"] for r in have], [r["widths"][name] for r in have], (), self.colour)


def series(run: Run) -> list[Series]:
    own = Series(str(run.config.get("method", "this run")), run.rows)
    if run.baseline is None:
        return [own]
    return [own, Series(str(run.baseline.config.get("method", "plain")), run.baseline.rows, 1, dashed=True)]


def width_plots(run: Run) -> list[Plot]:
    """Return the trajectory of every width, each in its unit."""
    own, kept = series(run)[0], kept_epoch(run)
    names = list(dict.fromkeys(name for row in run.rows for name in row.get("widths", {})))
    plots = []
    for k, name in enumerate(names):
        width = None if run.invariance is None else run.invariance.widths.get(name)
        unit = "" if width is None else width.unit
        planted = None if width is None else width.planted
        line = replace(own.width(name), name=name, colour=k)
        plots.append(width_plot(name, [line], unit, planted, kept))
    return plots


def width_plot(
    name: str, lines: Sequence[Line], unit: str, planted: Number | None = None, kept: tuple[str, Number] | None = None
) -> Plot:
    """Return one width over training, of one or several runs."""
    turn = unit == "deg" and max(y for line in lines for y in line.y) > 90
    return Plot(
        name,
        lines,
        levels=[] if planted is None else [(f"planted {either_way(planted, unit)}", planted)],
        at=kept,
        y_from=1.0 if unit == "factor" else 0.0,
        y_to=180.0 if turn else None,
        text=partial(amount, unit=unit),
    )


def kept_epoch(run: Run) -> tuple[str, Number] | None:
    epoch = 0 if run.exhibits is None else run.exhibits.epoch
    return ("kept", epoch) if epoch and run.rows and epoch != run.rows[-1]["epoch"] else None


def curve_plots(many: Sequence[Series], kept: tuple[str, Number] | None = None) -> list[Plot]:
    """Return evidence, score and loss over training, of one or several runs."""
    plots = []
    for key, title in CURVES.items():
        lines = [line for line in (one.line(key) for one in many) if len(line.x) > 1]
        if lines:
            text = percent if key == "test_accuracy" else partial(number, digits=3)
            plots.append(Plot(title, lines, at=kept, text=text))
    return plots


def table(run: Run, most: int = 200) -> tuple[list[str], list[list[str]]]:
    """Return the metrics as a table, thinned to `most` rows."""
    step = max(1, -(-len(run.rows) // most))
    kept = [row for k, row in enumerate(run.rows) if k % step == 0 or k == len(run.rows) - 1]
    keys = [key for key in dict.fromkeys(("loss", *CURVES)) if any(key in row for row in kept)]
    names = list(dict.fromkeys(name for row in kept for name in row.get("widths", {})))
    units = {} if run.invariance is None else {n: w.unit for n, w in run.invariance.widths.items()}
    body = [
        [str(row["epoch"])]
        + [amount(row.get("widths", {}).get(name), units.get(name, "")) for name in names]
        + [number(row.get(key), 5) for key in keys]
        for row in kept
    ]
    return ["epoch", *names, *(key.replace("_", " ") for key in keys)], body
