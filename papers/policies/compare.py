"""Run what is missing of a comparison, then write its table; each result is kept as it comes.

OUT/bench_policies_SCALE.jsonl    a line per cell
OUT/bench_policies_SCALE.md       the table
"""

from dataclasses import dataclass
from pathlib import Path

from augury.core.errors import InputError, RunError, choose
from augury.core.files import write_text
from papers.cell import narrowed
from papers.grid import Failure, Run, Watch, run_grid
from papers.policies.policies import SCALES, grid, run_policy
from papers.policies.table import write
from papers.results import read

DOCS, SCRATCH = Path("docs/results"), Path("runs/bench")
"""Where results go unless told: those worth keeping, and those of a quick try."""

RUNS: dict[str, Run] = {"policies": run_policy}
"""Every comparison, and what runs one of its cells."""


@dataclass(frozen=True)
class Request:
    """What to compare."""

    what: str = "policies"
    """A key of `RUNS`."""
    scale: str = "small"
    """A key of `SCALES`."""
    seeds: int = 1
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
        choose("benchmark", self.what, RUNS)
        choose("scale", self.scale, SCALES)
        for name in ("seeds", "jobs"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; got {getattr(self, name)}.")

    @property
    def stem(self) -> Path:
        """Where everything goes, without its ending."""
        folder = self.out or (SCRATCH if self.scale == "quick" else DOCS)
        return folder / f"bench_{self.what}_{self.scale}"


@dataclass(frozen=True)
class Compared:
    """What came of it."""

    table: Path
    """The Markdown file."""
    lines: Path
    """The results file."""
    cells: int
    """Cells of the grid, after the filters."""
    ran: int
    """Cells that were run now."""
    failures: tuple[Failure, ...]
    """Cells that could not be run."""
    text: str
    """The content of the Markdown file."""


def compare(request: Request, watch: Watch | None = None) -> Compared:
    """Run what is missing and write the table."""
    lines, page = request.stem.with_suffix(".jsonl"), request.stem.with_suffix(".md")
    wanted = narrowed(grid(request.scale, range(request.seeds)), list(request.only))
    done = read([lines])
    missing = [cell for cell in wanted if cell.key not in done]
    ran, failures = run_grid(
        missing, RUNS[request.what], lines, jobs=request.jobs, device=request.device, watch=watch
    )
    if failures and len(failures) == len(wanted):
        raise RunError(f"no cell could be run; the first says: {failures[0].message}")
    there = read([lines])
    seeds = sorted({result.cell.seed for result in there.values()})
    rows = [there[cell.key] for cell in grid(request.scale, seeds) if cell.key in there]
    text = write(rows, f"augury bench {request.what} --scale {request.scale} --seeds {len(seeds)}")
    write_text(page, text)
    return Compared(page, lines, len(wanted), len(ran), tuple(failures), text)
