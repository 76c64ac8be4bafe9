"""What is said of data that hold no invariance, or hardly any data: how often is a verdict "invariant" wrong?

    python benchmarks/hostile.py [--cases "permuted labels" ...] [--seeds 0-2] [--steps 2400]       (make hostile)

The processor time is estimated first (with --plan, nothing else is done); runs that --out has are not repeated.
Every case learns a rotation with LILA, on an MLP and a CNN. "left or right" and "five bins" have labels that are the
angle itself: digits turned by up to 60 degrees to either side, and which side (or which fifth) to tell. A verdict
says that labels are kept for most inputs, so that near the edge of a bin a small width may be called invariant: `share`
is the share of inputs whose label the width's rotations do keep, on average.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from augury.core.errors import AuguryError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.data.variants import resample, rotations
from augury.methods.forecast import forecast
from augury.methods.learn import learn

SIDE = 60.0
"""Largest angle of digits whose label is the angle."""


def digits(seed: int, n: int = 1000) -> Dataset:
    return load("mnist5k", subset=n, seed=seed)


def permuted(data: Dataset, seed: int) -> Dataset:
    return replace(data, y_train=data.y_train[torch.randperm(len(data.y_train), generator=generator(seed))])


def duplicated(data: Dataset, copies: int = 10) -> Dataset:
    few = len(data.x_train) // copies
    return replace(data, x_train=data.x_train[:few].repeat(copies, 1, 1, 1), y_train=data.y_train[:few].repeat(copies))


def two_per_class(data: Dataset) -> Dataset:
    keep = torch.cat([(data.y_train == c).nonzero()[:2, 0] for c in range(data.n_outputs)])
    return replace(data, x_train=data.x_train[keep], y_train=data.y_train[keep])


def oriented(data: Dataset, bins: int, seed: int) -> Dataset:
    """Digits turned by up to `SIDE` degrees to either side; the label is the bin of the angle."""
    rng = generator(seed)

    def turned(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        share = torch.rand(len(x), generator=rng, dtype=torch.float64)
        return resample(x, rotations(SIDE * (2 * share - 1))), (share * bins).long().clamp(max=bins - 1)

    (x, y), (x_test, y_test) = turned(data.x_train), turned(data.x_test)
    names = tuple(map(str, range(bins)))
    return Dataset(x, y, x_test, y_test, class_names=names, source=f"{data.source}, {bins} bins of the angle")


def classes(n: int, side: int, seed: int) -> Dataset:
    """Random images, four of each of many classes: a random picture and noise."""
    rng = generator(seed)
    y = torch.arange(4 * n) % n
    x = torch.rand(n, 1, side, side, generator=rng)[y] * 0.8
    x = x + 0.2 * torch.rand(4 * n, 1, side, side, generator=rng)
    return Dataset(x, y, x[:n], y[:n], class_names=tuple(map(str, range(n))), source=f"{n} classes")


CASES: dict[str, Callable[[int], Dataset]] = {
    "permuted labels": lambda seed: permuted(digits(seed), seed),
    "constant images": lambda seed: (lambda d: replace(d, x_train=torch.full_like(d.x_train, 0.5)))(digits(seed)),
    "duplicated images": lambda seed: permuted(duplicated(digits(seed)), seed),
    "two images per class": lambda seed: two_per_class(digits(seed)),
    "300 classes": lambda seed: classes(300, 12, seed),
    "left or right": lambda seed: oriented(digits(seed, 2000), 2, seed),
    "five bins": lambda seed: oriented(digits(seed, 2000), 5, seed),
    "rate 10": digits,
}
"""Every case by its name; all are learned with the generator of rotations."""
SETTINGS: dict[str, dict[str, Any]] = {"rate 10": {"rate": 10.0}}
BINS = {"left or right": 2, "five bins": 5}


def kept(degrees: float, bins: int) -> float:
    """Return the share of (input, rotation up to a width) that stay in their bin."""
    size = 2 * SIDE / bins
    a = torch.linspace(0, size, 201, dtype=torch.float64)[:, None]
    moved = a + degrees * torch.linspace(-1, 1, 201, dtype=torch.float64)
    inside = (moved >= 0) & (moved < size)
    middle, edge = float(inside.double().mean()), float((moved >= 0).double().mean())
    return (2 * edge + (bins - 2) * middle) / bins


def asked(case: str, seed: int, steps: int) -> dict[str, Any]:
    return {"generators": ("rotation",), "seed": seed, "steps": steps, **SETTINGS.get(case, {})}


def one(case: str, model: str, seed: int, steps: int) -> dict[str, Any]:
    """Learn one case; an error of ours is an answer. Seconds are those of the processor."""
    run, started = {"case": case, "model": model, "seed": seed, "steps": steps}, time.process_time()
    try:
        found = learn(CASES[case](seed), model, **asked(case, seed, steps)).invariance
    except AuguryError as error:
        return {**run, "verdict": "refused", "why": str(error)[:120], "seconds": time.process_time() - started}
    width = found.widths["rotation"]
    said = {"value": width.value, "low": width.low, "high": width.high, "verdict": width.verdict}
    share = {"share": kept(width.low or 0.0, BINS[case])} if case in BINS else {}
    return {**run, **said, **share, "accuracy": found.test_accuracy, "seconds": time.process_time() - started}


def plan(missing: list[tuple[str, str, int, int]]) -> None:
    """Print what the runs will take, from a few steps of one run of each case and network."""
    seconds: dict[tuple[str, str], float] = {}
    for case, model, seed, steps in missing:
        if (case, model) not in seconds:
            given = asked(case, seed, steps)
            seconds[case, model] = forecast(CASES[case](seed), model, clock=time.process_time, **given).seconds
            print(f"{case}, {model}: about {seconds[case, model]:.0f} s of the processor a run", flush=True)
    total = sum(seconds[case, model] for case, model, *_ in missing)
    print(f"{len(missing)} runs: about {total / 60:.0f} min of the processor", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--models", nargs="*", default=["mlp", "cnn"])
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--out", type=Path, default=Path("runs/hostile.json"))
    parser.add_argument("--plan", action="store_true")
    given = parser.parse_args()
    first, last = map(int, given.seeds.split("-"))
    runs = json.loads(given.out.read_text())["runs"] if given.out.exists() else []
    wanted = [(c, m, k, given.steps) for k in range(first, last + 1) for c in given.cases for m in given.models]
    done = {(run["case"], run["model"], run["seed"], run["steps"]) for run in runs}
    missing = [run for run in wanted if run not in done]
    plan(missing)
    if given.plan:
        return
    for run in missing:
        runs.append(one(*run))
        print(json.dumps(runs[-1]), flush=True)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps({"runs": runs}, indent=1) + "\n")
    for case in given.cases:
        mine = [run for run in runs if run["case"] == case]
        wrong = [run for run in mine if run["verdict"] == "invariant"]
        print(f"{case}: invariant in {len(wrong)} of {len(mine)}")


if __name__ == "__main__":
    main()
