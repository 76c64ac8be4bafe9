"""Where the cells of a grid run: in this process, in several processes, or on a Ray cluster.

A cell whose worker is lost (killed, out of memory, a machine that went away) runs again, `LOSSES` times at most.
Results come back to the one process that started the grid, which alone writes them: each lands once.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context

from augury.core.errors import InputError
from papers.results import Cell, Result

LOSSES = 2
"""How often a cell that lost its worker runs again."""


@dataclass(frozen=True)
class Failure:
    """A cell that could not be run, and why; it is tried again next time."""

    cell: Cell
    message: str


Attempt = Callable[[Cell], Result | Failure]


def local(cells: Sequence[Cell], attempt: Attempt, jobs: int, device: str) -> Iterator[Result | Failure]:
    """Run cells in this process, or in several that share the cores."""
    if min(jobs, len(cells)) <= 1:
        yield from map(attempt, cells)
        return
    jobs, waiting = min(jobs, len(cells)), list(cells[::-1])
    while waiting:
        running: dict[Future[Result | Failure], Cell] = {}
        with _pool(jobs) as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < jobs:  # so that of a lost worker only these are in doubt
                        future = pool.submit(attempt, waiting[-1])
                        running[future] = waiting.pop()
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        outcome = future.result()
                        del running[future]
                        yield outcome
            except BrokenProcessPool:  # of all its cells, whichever was lost
                pass
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        for future, cell in running.items():
            landed = future.done() and future.exception() is None
            yield future.result() if landed else _again(cell, attempt)


def _again(cell: Cell, attempt: Attempt) -> Result | Failure:
    """Run a cell whose worker may have been lost alone, so that no other cell is blamed for it."""
    for _ in range(LOSSES):
        with _pool(1) as pool:
            try:
                return pool.submit(attempt, cell).result()
            except BrokenProcessPool:
                continue
    return Failure(cell, _lost(LOSSES + 1))


def by_ray(cells: Sequence[Cell], attempt: Attempt, jobs: int, device: str) -> Iterator[Result | Failure]:
    """Run cells as tasks of Ray: on the cluster of RAY_ADDRESS, or here on as many cores as there are jobs."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise InputError("executor 'ray' needs Ray: pip install -e '.[ray]'.") from error

    if here := not ray.is_initialized():
        size = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": jobs, "include_dashboard": False}
        ours = signal.getsignal(signal.SIGTERM)
        ray.init(log_to_driver=False, **size)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)  # Ray's aborts, without a message
    needs = {"num_cpus": 1, "num_gpus": int(device.startswith("cuda"))}
    task = ray.remote(**needs, max_retries=LOSSES)(lambda cell: attempt(cell))
    running = {task.remote(cell): cell for cell in cells}
    try:
        while running:
            (done,), _ = ray.wait(list(running))
            cell = running.pop(done)
            try:
                yield ray.get(done)
            except ray.exceptions.WorkerCrashedError:
                yield Failure(cell, _lost(LOSSES + 1))
            except ray.exceptions.RayError as error:
                yield Failure(cell, f"Ray could not run it: {str(error).strip().splitlines()[-1]}")
    finally:
        for task_left in running:
            ray.cancel(task_left, force=True)
        if here:
            ray.shutdown()


EXECUTORS = {"local": local, "ray": by_ray}


def _lost(times: int) -> str:
    return f"its process was lost {times} times: killed, or out of memory?"


def _pool(jobs: int) -> ProcessPoolExecutor:
    threads = max(1, (os.cpu_count() or 1) // jobs)
    return ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(threads, os.getpid())
    )


def _begin(threads: int, parent: int) -> None:
    """Prepare a worker: its share of the cores; it ends if the parent is killed."""
    import torch

    torch.set_num_threads(threads)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
