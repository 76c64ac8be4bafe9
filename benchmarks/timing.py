"""Shared by the benchmarks: the best of several times, the peak memory of a fresh process, the machine."""

import ctypes
import gc
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

Work = Callable[[], object]


def seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of(cases: Mapping[str, Work], repeats: int) -> dict[str, float]:
    """Return the shortest time of each case; cases alternate, since other load on the machine only adds time."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(repeats):
        for name, work in cases.items():
            best[name] = min(best[name], seconds(work))
    return best


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"this system tells no {field}: peak memory is measured on Linux only")


def peak_memory(work: Work) -> dict[str, int]:
    """Return resident bytes before the work, and the peak during it. Call it once, in a fresh process."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    baseline = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    work()
    return {"baseline": baseline, "peak": _status("VmHWM")}


def in_fresh_process(script: str, arguments: list[str]) -> dict:
    """Run a script once more and return the JSON object that it prints last."""
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{script} {' '.join(arguments)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> dict[str, object]:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 2**30, 1),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
    }
