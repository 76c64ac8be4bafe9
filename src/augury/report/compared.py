"""The page of several runs side by side."""

from collections.abc import Sequence
from typing import Any

from augury.records import Width
from augury.report.bars import Bar, bar_list, scale_end, width_bar
from augury.report.plots import Line, draw, legend
from augury.report.progress import Series, curve_plots, width_plot
from augury.report.read import Found, Run
from augury.report.tables import named, remarks, tables
from augury.report.words import either_way, percent


def compared_page(found: Sequence[Found]) -> dict[str, Any]:
    """Return all that the template of a comparison needs."""
    names = named(found)
    runs = [(name, one) for name, one in zip(names, found, strict=True) if isinstance(one, Run)]
    series = [Series(name, run.rows, k) for k, (name, run) in enumerate(runs)]
    plots = curve_plots(series)
    return {
        "title": " and ".join(names) if len(names) == 2 else f"{len(names)} runs",
        "remarks": remarks(found),
        "tables": tables(found),
        "widths": _widths(runs),
        "accuracy": _accuracy(runs),
        "curves": [(plot.title, draw(plot), legend(plot.lines)) for plot in plots],
        "trajectories": [
            (name, draw(plot), legend(plot.lines)) for name, plot in _trajectories(series, runs)
        ],
    }


def _widths(runs: Sequence[tuple[str, Run]]) -> list[tuple[str, list[tuple[str, str, Any, str]]]]:
    """Return every width with a bar for each run that has it, all to one scale."""
    by: dict[str, list[tuple[str, Width]]] = {}
    for name, run in runs:
        for generator, width in ({} if run.invariance is None else run.invariance.widths).items():
            by.setdefault(generator, []).append((name, width))
    out = []
    for generator, some in by.items():
        same = [(name, w) for name, w in some if w.unit == some[0][1].unit]
        end = scale_end([w for _, w in same])
        out.append((
            generator,
            [(n, either_way(w.value, w.unit), width_bar(w, end), w.verdict) for n, w in same],
        ))
    return out


def _accuracy(runs: Sequence[tuple[str, Run]]) -> Any:
    bars = []
    for k, (name, run) in enumerate(runs):
        accuracy = None if run.invariance is None else run.invariance.test_accuracy
        if accuracy is not None:
            bars.append(Bar(name, accuracy, percent(accuracy), k % 7))
    return bar_list(bars, 1.0) if len(bars) > 1 else None


def _trajectories(series: Sequence[Series], runs: Sequence[tuple[str, Run]]) -> list[tuple[str, Any]]:
    units = {n: w.unit for _, run in runs if run.invariance for n, w in run.invariance.widths.items()}
    out = []
    for name, unit in units.items():
        lines: list[Line] = [line for line in (one.width(name) for one in series) if len(line.x) > 1]
        if lines:
            out.append((name, width_plot(name, lines, unit)))
    return out
