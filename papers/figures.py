"""Figures by matplotlib: panels of curves, fields of probability, rows of small pictures.

Saved as SVG without date and with fixed identifiers: the same results give the same bytes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from augury.core.files import written_whole

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a7d00", "#555555")
"""Of curves; distinct for people who do not see all colours."""
GAP = 2
"""White pixels between two small pictures."""

matplotlib.rcParams.update({
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "augury",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "lines.linewidth": 1.5,
    "legend.frameon": False,
})


def panels(n: int, columns: int = 3, size: tuple[float, float] = (2.9, 2.3)) -> tuple[Figure, list[Axes]]:
    """Return a figure with n panels of a size in inches, row by row."""
    columns = min(n, columns)
    rows = -(-n // columns)
    figure = Figure(figsize=(columns * size[0], rows * size[1] + 0.3), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for unused in axes[n:]:
        unused.remove()
    return figure, list(axes[:n])


def legend(figure: Figure) -> None:
    """Put one legend below all panels; a label that several share appears once."""
    entries: dict[str, Any] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    inches = 0.6 + 0.075 * max(map(len, entries))  # of the longest entry
    columns = min(len(entries), max(1, int(figure.get_figwidth() / inches)))
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)


def fields(
    found: Mapping[str, tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]]], extent: float, columns: int = 3
) -> Figure:
    """Draw probabilities on a square, row by row from below, with labelled points (x, y, class); by title."""
    figure, axes = panels(len(found), columns, (2.6, 2.7))
    square = (-extent, extent, -extent, extent)
    shades = LinearSegmentedColormap.from_list("p", ["#8fb3d9", "#ffffff", "#f2a65e"])
    for ax, (title, (values, points)) in zip(axes, found.items(), strict=True):
        image = ax.imshow(values, shades, origin="lower", extent=square, vmin=0, vmax=1, interpolation="none")
        for label, (marker, colour) in enumerate((("o", "#123c69"), ("^", "#7a3200"))):
            x, y = zip(*[point[:2] for point in points if point[2] == label], strict=True)
            ax.scatter(x, y, 7, colour, marker=marker, linewidths=0, label=f"class {label}")
        ax.set(title=title, xlim=square[:2], ylim=square[2:], xlabel="$x_1$", ylabel="$x_2$")
        ax.grid(False)
    figure.colorbar(image, ax=axes, label="p(class 1)", shrink=0.6)
    legend(figure)
    return figure


def colours(picture: Any, largest: float, signed: bool = True) -> Any:
    """Return a picture as RGB: red above zero and blue below, or black to white; three channels about grey."""
    values = np.asarray(picture, float) / largest
    if values.ndim == 3:
        return (values.clip(-1, 1) + 1) / 2
    shade = (values.clip(-1, 1) + 1) / 2 if signed else values.clip(0, 1)
    return matplotlib.colormaps["RdBu_r" if signed else "gray"](shade)[..., :3]


def mosaic(rows: Sequence[tuple[str, Sequence[Any]]], columns: Sequence[str], title: str) -> Figure:
    """Draw rows of RGB pictures of one size, with words beside each row and above each column."""
    lines = [side_by_side([np.asarray(picture) for picture in pictures]) for _, pictures in rows]
    canvas = side_by_side([line.swapaxes(0, 1) for line in lines]).swapaxes(0, 1)
    height, width = np.asarray(rows[0][1][0]).shape[:2]
    figure = Figure(figsize=(1.2 + 0.62 * len(columns), 0.7 + 0.62 * len(rows) * height / width), layout="constrained")
    ax = figure.subplots()
    ax.imshow(canvas, interpolation="none", extent=(0, canvas.shape[1], canvas.shape[0], 0))
    ax.set_title(title)
    ax.set_xticks([k * (width + GAP) + width / 2 for k in range(len(columns))], columns)
    ax.set_yticks([k * (height + GAP) + height / 2 for k in range(len(rows))], [name for name, _ in rows])
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    return figure


def side_by_side(pictures: Sequence[Any]) -> Any:
    """Return pictures [H, W, 3] in a row, with white between them."""
    white = np.ones((pictures[0].shape[0], GAP, 3))
    return np.concatenate([part for picture in pictures for part in (white, picture)][1:], axis=1)


def save(figure: Figure, path: Path) -> None:
    with written_whole(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None})
