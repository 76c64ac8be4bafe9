"""Reproduce a table or a figure: run what is missing of its grid, then write ours beside the paper's.

    OUT/PAPER_ITEM_SCALE.jsonl    a line per cell, appended as it ends
    OUT/PAPER_ITEM.md             the table, a section for each scale that has results
    OUT/PAPER_ITEM_SCALE_*.svg    figures, where the item has some

A cell that any item of the paper has finished at this scale is not run again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from augury.core.errors import InputError, RunError, choose
from augury.core.files import write_text, written_whole
from papers.catalog import PAPERS
from papers.cell import Cell, Result, narrowed
from papers.grid import Failure, Watch, run_grid
from papers.item import SCALES, Item
from papers.provenance import provenance
from papers.results import read

DOCS, SCRATCH = Path("docs/results"), Path("runs/reproduce")
"""Where results go unless told: those worth keeping, and those of a quick try."""


@dataclass(frozen=True)
class Request:
    """What to reproduce."""

    paper: str
    """A key of `PAPERS`."""
    item: str
    """One of its items."""
    scale: str = "small"
    """One of `SCALES`."""
    seeds: int = 3
    """How many seeds, from 0."""
    only: tuple[str, ...] = ()
    """Filters on the cells to run, such as "method=lila"; the table holds all that is there."""
    jobs: int = 1
    """Processes."""
    out: Path | None = None
    """Folder for what is written; by the scale unless told."""
    device: str = "cpu"
    """Where to train, as torch names it."""

    def __post_init__(self) -> None:
        choose("paper", self.paper, PAPERS)
        choose(f"item of paper '{self.paper}'", self.item, PAPERS[self.paper].items)
        choose("scale", self.scale, SCALES)
        if self.seeds < 1:
            raise InputError(f"seeds must be at least 1; got {self.seeds}.")
        if self.jobs < 1:
            raise InputError(f"jobs must be at least 1; got {self.jobs}.")

    @property
    def folder(self) -> Path:
        """Where everything goes."""
        return self.out or (SCRATCH if self.scale == "quick" else DOCS)

    @property
    def entry(self) -> Item:
        """The item itself."""
        return PAPERS[self.paper].items[self.item]

    def lines(self, scale: str | None = None, item: str | None = None) -> Path:
        """Return the results file of a scale and an item, this one's unless told."""
        return self.folder / f"{self.paper}_{item or self.item}_{scale or self.scale}.jsonl"


@dataclass(frozen=True)
class Reproduced:
    """What came of it."""

    table: Path
    """The Markdown file."""
    lines: Path
    """The results file."""
    figures: tuple[Path, ...]
    """Figures that were drawn."""
    cells: int
    """Cells of the grid, after the filters."""
    ran: int
    """Cells that were run now."""
    failures: tuple[Failure, ...]
    """Cells that could not be run."""
    text: str
    """The content of the Markdown file."""


def reproduce(request: Request, watch: Watch | None = None) -> Reproduced:
    """Run what is missing and write the table."""
    cells = narrowed(request.entry.grid(request.scale, range(request.seeds)), list(request.only))
    done = finished(request, request.scale)
    missing = [cell for cell in cells if cell.key not in done]
    results, failures = run_grid(
        missing, request.entry.run, request.lines(), jobs=request.jobs, device=request.device, watch=watch
    )
    if failures and len(failures) == len(cells):
        raise RunError(f"no cell could be run; the first says: {failures[0].message}")
    sections, figures = [f"# {PAPERS[request.paper].title}: {request.item}\n\n{request.entry.what}\n"], []
    for scale in SCALES[::-1]:
        if rows := table_rows(request, scale):
            sections.append(
                f"## Scale: {scale}\n\n{request.entry.write(rows)}\n{provenance(request, scale, rows)}"
            )
            figures += _draw(request, scale, rows)
    text = "\n".join(sections)
    path = request.folder / f"{request.paper}_{request.item}.md"
    write_text(path, text)
    ran = len(results)
    return Reproduced(path, request.lines(), tuple(figures), len(cells), ran, tuple(failures), text)


def finished(request: Request, scale: str) -> dict[str, Result]:
    """Return every result that the paper's items have at a scale, by key."""
    others = [item for item in PAPERS[request.paper].items if item != request.item]
    return read([*(request.lines(scale, item) for item in others), request.lines(scale)])


def table_rows(request: Request, scale: str) -> list[Result]:
    """Return the results that belong in the table at a scale, seeds together, in the order of the grid."""
    done = finished(request, scale)
    seeds = sorted({result.cell.seed for result in done.values()})
    cells = request.entry.grid(scale, seeds)
    order = {_but_seed(cell): k for k, cell in reversed(list(enumerate(cells)))}
    there = [cell for cell in cells if cell.key in done]
    return [done[cell.key] for cell in sorted(there, key=lambda cell: (order[_but_seed(cell)], cell.seed))]


def _but_seed(cell: Cell) -> str:
    return replace(cell, seed=0).key


def _draw(request: Request, scale: str, rows: Sequence[Result]) -> list[Path]:
    paths = []
    for name, content in request.entry.draw(rows).items():
        path = request.folder / f"{request.paper}_{request.item}_{scale}_{name}"
        with written_whole(path) as temporary:
            temporary.write_bytes(content)
        paths.append(path)
    return paths
