"""Reproduce an item: run what is missing of its grid, then write ours beside the paper's.

    OUT/PAPER_ITEM_SCALE.jsonl    a line per cell, appended as it ends
    OUT/PAPER_ITEM.md             the table, a section for each scale that has results
    OUT/PAPER_ITEM_SCALE_*.svg    figures, if the item has some

A cell that any item of the paper has finished at this scale is not run again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from augury.core.errors import InputError, RunError, choose
from augury.core.files import write_text
from papers.catalog import PAPERS, Item, item
from papers.claims import section
from papers.executor import EXECUTORS, Failure
from papers.grid import Watch, run_grid
from papers.markdown import grouped, seconds, table
from papers.results import Cell, Result, narrowed, read

DOCS, SCRATCH = Path("docs/results"), Path("runs/reproduce")
"""Default folders: for results worth keeping, and for those of scale quick."""


@dataclass(frozen=True)
class Request:
    """What to reproduce."""

    paper: str
    item: str
    scale: str = "small"
    seeds: int = 3  # how many
    only: tuple[str, ...] = ()  # filters on the cells to run, such as "method=lila"
    jobs: int = 1  # processes
    out: Path | None = None  # folder for what is written; if omitted, by the scale
    device: str = "cpu"
    first: int = 0  # the first seed
    write_only: bool = False  # run nothing, and write the table and the figures of the results that are there
    executor: str = "local"  # where cells run

    def __post_init__(self) -> None:
        choose("executor", self.executor, EXECUTORS)
        choose("scale", self.scale, self.entry.scales)
        for name in ("seeds", "jobs"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; got {getattr(self, name)}.")

    @property
    def entry(self) -> Item:
        """The item itself."""
        return item(self.paper, self.item)

    @property
    def folder(self) -> Path:
        """Where everything goes."""
        return self.out or (SCRATCH if self.scale == "quick" else DOCS)

    def lines(self, scale: str | None = None, item: str | None = None) -> Path:
        """Return the results file of a scale and an item (default: this one's)."""
        return self.folder / f"{self.paper}_{item or self.item}_{scale or self.scale}.jsonl"


@dataclass(frozen=True)
class Reproduced:
    """What was written, and how many cells were run."""

    table: Path
    lines: Path
    figures: tuple[Path, ...]
    cells: int  # of the grid, after the filters
    ran: int  # cells that were run now
    failures: tuple[Failure, ...]
    text: str  # the content of the table's file


def reproduce(request: Request, watch: Watch | None = None) -> Reproduced:
    """Run what is missing and write the table."""
    entry, done = request.entry, finished(request, request.scale)
    cells = narrowed(entry.grid(request.scale, range(request.first, request.first + request.seeds)), request.only)
    missing = [] if request.write_only else [cell for cell in cells if cell.key not in done]
    results, failures = run_grid(
        missing,
        entry.run,
        request.lines(),
        jobs=request.jobs,
        device=request.device,
        executor=request.executor,
        watch=watch,
    )
    if failures and len(failures) == len(cells):
        raise RunError(f"no cell could be run; the first says: {failures[0].message}")
    sections, figures = [f"# {PAPERS[request.paper].title}: {request.item}\n\n{entry.what}\n"], []
    for scale in entry.scales[::-1]:
        if rows := table_rows(request, scale):
            drawn = _draw(request, scale, rows)
            shown = "".join(f"![{path.stem}]({path.name})\n\n" for path in drawn)
            below = provenance(request, scale, rows)
            said = section(entry.claims, rows)
            sections.append(f"## Scale: {scale}\n\n{entry.write(rows)}\n{said}{shown}{below}")
            figures += drawn
    if len(sections) == 1:
        raise InputError(f"there are no results of {request.paper} {request.item} in {request.folder}.")
    text, path = "\n".join(sections), request.folder / f"{request.paper}_{request.item}.md"
    write_text(path, text)
    ran = len(results)
    return Reproduced(path, request.lines(), tuple(figures), len(cells), ran, tuple(failures), text)


def finished(request: Request, scale: str) -> dict[str, Result]:
    """Return every result that the paper's items have at a scale, by key."""
    others = [name for name in PAPERS[request.paper].items if name != request.item]
    return read([*(request.lines(scale, name) for name in others), request.lines(scale)])


def table_rows(request: Request, scale: str) -> list[Result]:
    """Return the results that belong in the table at a scale, seeds together, in the order of the grid."""
    done = finished(request, scale)
    cells = request.entry.grid(scale, sorted({result.cell.seed for result in done.values()}))
    order = {_but_seed(cell): k for k, cell in reversed(list(enumerate(cells)))}
    there = [cell for cell in cells if cell.key in done]
    return [done[cell.key] for cell in sorted(there, key=lambda cell: (order[_but_seed(cell)], cell.seed))]


def _but_seed(cell: Cell) -> str:
    return replace(cell, seed=0).key


def _draw(request: Request, scale: str, rows: Sequence[Result]) -> list[Path]:
    from papers.figures import save

    paths = []
    for name, figure in request.entry.draw(rows).items():
        paths.append(request.folder / f"{request.paper}_{request.item}_{scale}_{name}.svg")
        save(figure, paths[-1])
    return paths


def provenance(request: Request, scale: str, results: Sequence[Result]) -> str:
    """Return what is below every table: the command, the seeds, the time, the machine, the settings."""
    seeds = sorted({r.cell.seed for r in results})
    total = sum(r.invariance.seconds for r in results)
    machines = sorted({
        f"{m['cores']} cores, {m['memory_gb']} GB, {m['threads']} threads per run, torch {m['torch']}"
        for m in (r.machine for r in results)
    })
    jobs = "" if request.jobs == 1 else f" --jobs {request.jobs}"
    jobs += f" --first-seed {min(seeds)}" if min(seeds) else ""
    ours = request.paper == "policies"
    which = "that are not defaults" if ours else "of the cells (the others are those of `papers/recipes.py`)"
    return (
        f"- Command: `python -m papers {request.paper} {request.item} --scale {scale} --seeds {len(seeds)}{jobs}`\n"
        f"- Seeds: {', '.join(map(str, seeds))}; {len(results)} runs, {total:,.0f} seconds of training in all.\n"
        f"- Machine: {'; '.join(machines)}.\n"
        f"- Raw results: the `{request.paper}_*_{scale}.jsonl` files beside this one.\n\n"
        f"Settings {which}:\n\n{settings_table(results)}"
    )


def settings_table(results: Sequence[Result]) -> str:
    """Return the settings of every method and network, each line once."""

    def by(cell: Cell) -> tuple[str, ...]:
        values = json.loads(json.dumps(dict(cell.settings)))
        settings = ", ".join(f"{name}={value}" for name, value in sorted(values.items()))
        return cell.data, cell.model, cell.method, str(cell.subset or "all"), settings or "none"

    rows = [(*key, seconds(group)) for key, group in grouped(results, by).items()]
    return table(["data", "network", "method", "images", "settings", "seconds"], rows)
