"""Panels of curves over the methods of paper D: means over seeds with standard errors."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from papers.genuine.runs import label
from papers.markdown import grouped, mean_se
from papers.results import Result


def plot(
    ax: Axes,
    results: Sequence[Result],
    xs: Callable[[Result], Sequence[float]],
    ys: Callable[[Result], Sequence[float | None]],
    marker: str = "",
) -> None:
    """Draw a curve per method, with a band of one standard error."""
    for (name,), runs in grouped(results, lambda cell: (label(cell),)).items():
        x = xs(runs[0])
        rows = [list(ys(run)) for run in runs if len(ys(run)) == len(x)]
        means = [mean_se(column) for column in zip(*rows, strict=True)]
        points = [(at, *pair) for at, pair in zip(x, means, strict=True) if pair is not None]
        at, mean, error = zip(*points, strict=True)
        (line,) = ax.plot(at, mean, marker=marker, markersize=4, label=name)
        low, high = ([m + sign * e for m, e in zip(mean, error, strict=True)] for sign in (-1, 1))
        ax.fill_between(at, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
