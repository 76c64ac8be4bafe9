"""`python -m papers results`: run every missing cell of every paper, cheapest gap first; how long that will take."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from augury.core.files import write_text
from papers.catalog import PAPERS, item
from papers.markdown import table
from papers.reproduce import DOCS, Request, finished
from papers.results import Cell, Result
from papers.scoreboard import LETTERS

UNKNOWN = 60.0
"""Seconds of a cell of which no like has been run."""


@dataclass(frozen=True)
class Gap:
    """An item: its cells, those without a result that no item before it has, and the median seconds of one."""

    paper: str
    item: str
    cells: int
    missing: int
    seconds: float

    @property
    def left(self) -> float:
        """Seconds to fill the gap."""
        return self.missing * self.seconds


def gaps(seeds: int, folder: Path = DOCS) -> list[Gap]:
    """Return every item of the four papers: those without any result first, then by the time they take."""
    found, seen = [], set[str]()
    for paper in LETTERS:
        for name in PAPERS[paper].items:
            done = finished(Request(paper, name, out=folder), "small")
            cells = item(paper, name).grid("small", range(seeds))
            missing = [c for c in cells if c.key not in done and c.key not in seen]
            seen |= {c.key for c in missing}
            seconds = [_seconds(c, list(done.values())) for c in missing or cells]
            found.append(Gap(paper, name, len(cells), len(missing), sum(seconds) / len(seconds)))
    return sorted(found, key=lambda gap: (gap.missing < gap.cells, gap.left))


def _seconds(cell: Cell, done: Sequence[Result]) -> float:
    """Return the median time of the results that are most like a cell, epoch by epoch where cells name epochs."""
    epochs = cell.settings.get("epochs")

    def like(*names: str) -> list[float]:
        same = [r for r in done if all(getattr(r.cell, n) == getattr(cell, n) for n in names)]
        counted = [(r.invariance.seconds, r.cell.settings.get("epochs")) for r in same]
        return [s * epochs / e if e and epochs else s for s, e in counted]

    return median(like("data", "model", "method") or like("model", "algorithm") or like("algorithm") or [UNKNOWN])


def text(found: Sequence[Gap]) -> str:
    rows = [
        [LETTERS[g.paper], g.item, str(g.cells), str(g.missing), f"{g.seconds:.0f}", f"{g.left / 60:.0f}"]
        for g in found
    ]
    left = sum(g.left for g in found)
    head = ["paper", "item", "cells", "missing", "seconds per cell", "minutes left"]
    total = sum(g.missing for g in found)
    return f"{table(head, rows)}\n{total} cells are missing: {left / 3600:.1f} hours of one core.\n"


def write(seeds: int, folder: Path = DOCS) -> list[Gap]:
    """Write the page of the budget."""
    found = gaps(seeds, folder)
    about = (
        f"What `make results` with {seeds} seed{'s' * (seeds > 1)} at scale `small` has and what the rest costs, in "
        "the order of running. Seconds are medians by the clock over the most similar cells that were run, some "
        "of them beside other work; cells that items share count once."
    )
    write_text(folder / "budget.md", f"# The budget of the papers' items\n\n{about}\n\n{text(found)}")
    return found
