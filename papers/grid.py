"""Run the cells of a grid by an executor, each result kept as it comes."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from augury.core.errors import AuguryError, InputError, choose
from papers.executor import EXECUTORS, Failure
from papers.results import Cell, Result, append

Run = Callable[[Cell, str], Result]


Watch = Callable[[Result | Failure, int, int], None]
"""Called with each outcome, how many are done, and how many there are."""


def run_grid(
    cells: Sequence[Cell],
    run: Run,
    path: Path,
    *,
    jobs: int = 1,
    device: str = "cpu",
    executor: str = "local",
    watch: Watch | None = None,
) -> tuple[list[Result], list[Failure]]:
    """Run every cell and append its result to a file."""
    if jobs < 1:
        raise InputError(f"jobs must be at least 1; got {jobs}.")
    results: list[Result] = []
    failures: list[Failure] = []
    run_all = EXECUTORS[choose("executor", executor, EXECUTORS)]
    for outcome in run_all(cells, partial(attempt, run, device), jobs, device) if cells else ():
        if isinstance(outcome, Result):
            append(path, outcome)
            results.append(outcome)
        else:
            failures.append(outcome)
        if watch is not None:
            watch(outcome, len(results) + len(failures), len(cells))
    return results, failures


def attempt(run: Run, device: str, cell: Cell) -> Result | Failure:
    """Run a cell; a run that could not go on is an outcome, not the end of the grid."""
    try:
        return run(cell, device)
    except Exception as error:  # a fault in one cell must not cost the hours of the others
        known = isinstance(error, AuguryError)
        return Failure(cell, str(error) if known else f"{type(error).__name__}: {error}")
