"""Run the cells of a grid, one after the other or in several processes, each result kept as it comes."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from augury.core.errors import AuguryError, InputError
from papers.results import Cell, Result, append

Run = Callable[[Cell, str], Result]


@dataclass(frozen=True)
class Failure:
    """A cell that could not be run, and why; it is tried again next time."""

    cell: Cell
    message: str


Watch = Callable[[Result | Failure, int, int], None]
"""Called with each outcome, how many are done, and how many there are."""


def run_grid(
    cells: Sequence[Cell],
    run: Run,
    path: Path,
    *,
    jobs: int = 1,
    device: str = "cpu",
    watch: Watch | None = None,
) -> tuple[list[Result], list[Failure]]:
    """Run every cell and append its result to a file."""
    if jobs < 1:
        raise InputError(f"jobs must be at least 1; got {jobs}.")
    results: list[Result] = []
    failures: list[Failure] = []
    attempts = partial(attempt, run, device)
    for outcome in _outcomes(cells, attempts, min(jobs, len(cells))):
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


def _outcomes(
    cells: Sequence[Cell], attempts: Callable[[Cell], Result | Failure], jobs: int
) -> Iterator[Result | Failure]:
    if jobs <= 1:
        yield from map(attempts, cells)
        return
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(threads, os.getpid())
    ) as pool:
        try:
            for future in as_completed([pool.submit(attempts, cell) for cell in cells]):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(threads: int, parent: int) -> None:
    """Prepare a worker: its share of the cores; it ends if the parent is killed."""
    import torch

    torch.set_num_threads(threads)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
