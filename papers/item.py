"""What a table or a figure of a paper is made of. Free of torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from papers.cell import Cell, Result
from papers.grid import Run
from papers.run import run_cell

SCALES = ("quick", "small", "paper")
"""Seconds, on a few images; at most about an hour on two cores; the paper's own settings."""

Grid = Callable[[str, Sequence[int]], list[Cell]]
Write = Callable[[Sequence[Result]], str]
Draw = Callable[[Sequence[Result]], Mapping[str, bytes]]


def _nothing(results: Sequence[Result]) -> Mapping[str, bytes]:
    return {}


@dataclass(frozen=True)
class Item:
    """One table or figure."""

    what: str
    """What it shows, in a line."""
    grid: Grid
    """From a scale and the seeds to the cells, the most telling first."""
    write: Write
    """From results, some of which may be missing, to Markdown: ours beside the paper's."""
    draw: Draw = _nothing
    """From results to files: the end of the name ("trajectories.svg") and the content."""
    run: Run = run_cell
    """Runs one cell."""


@dataclass(frozen=True)
class Paper:
    """One paper."""

    title: str
    """As printed."""
    items: Mapping[str, Item] = field(default_factory=dict)
    """Its tables and figures, by name."""
