"""Do 95 % intervals hold the truth in 95 % of runs, and how often is a verdict wrong?

    python benchmarks/calibration.py [--methods invariant_weights lila] [--widths 20 60 120] [--seeds 100-139]

The problem has a known truth and an exact answer: 80 points of the disc of radius 2, targets drawn from the network
itself (random Fourier features averaged over rotations up to the planted width, weights from the prior, noise),

    y = phi_hat(x; eta) w + sigma e,    w ~ N(0, I),
    log p(y | eta, delta, sigma) = log N(y; 0, Phi Phi^T / delta + sigma^2 I).

Each method learns from it with its default settings, from a width of 0. "exact" is the set of widths within 1.92 nats
of the best, by the closed form in float64 with delta and sigma at their best for each width: what a perfect optimiser
would report. Null cases have nothing to find: points on a chequerboard, digits as they are, and labels in random order.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.data.variants import toy
from augury.methods.learn import learn
from augury.models.networks import build
from augury.training.batches import streams

RESULT = Path(__file__).parents[1] / "docs" / "results" / "calibration.json"
POINTS, RADIUS, SIGMA = 80, 2.0, 0.5
"""Size of a data set, radius of the disc, standard deviation of the noise."""
DIGITS = 1000
"""Digits in each set with a planted width."""
NODES = 64
"""Nodes of the midpoint rule for the exact orbit average."""
GRID = range(0, 181, 3)
"""Widths of the exact profile, in degrees."""


def features(x: Tensor, degrees: float, seed: int) -> Tensor:
    """phi_hat(x) of the network that a run with this seed builds, averaged over rotations up to a width."""
    net = build("rff", (2,), 1, streams(seed)["network"]).double()
    angles = ((torch.arange(NODES, dtype=torch.float64) + 0.5) * (2 / NODES) - 1) * math.radians(degrees)
    c, s = angles.cos(), angles.sin()
    turns = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)
    with torch.no_grad():
        return sum(net.features(x @ T.mT) for T in turns) / NODES


def drawn(degrees: float, seed: int) -> Dataset:
    """A data set from the model itself."""
    rng = generator(10_000 + seed)
    radius = RADIUS * torch.rand(POINTS, generator=rng, dtype=torch.float64)
    angle = 2 * math.pi * torch.rand(POINTS, generator=rng, dtype=torch.float64)
    x = radius[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    phi = features(x, degrees, seed)
    w = torch.randn(phi.shape[1], 1, generator=rng, dtype=torch.float64)
    y = phi @ w + SIGMA * torch.randn(POINTS, 1, generator=rng, dtype=torch.float64)
    return Dataset(
        x.float(), y.float(), x[:0].float(), y[:0].float(), kind="coordinates", task="regression",
        source=f"drawn from rff ({degrees:g} deg)", planted={"rotation": degrees},
    )  # fmt: skip


def best_evidence(phi: Tensor, y: Tensor) -> float:
    """log p(y) in closed form, at the best prior precision and noise."""
    lam, U = torch.linalg.eigh(phi @ phi.mT)
    z, N = (U.mT @ y).square().sum(1), len(y)

    def at(log_ratio: Tensor) -> Tensor:  # ratio = sigma^2 delta; the scale 1 / delta that is left has a closed form
        v = lam.clamp(min=0) + log_ratio[:, None].exp()
        return -(v.log().sum(1) + N * ((z / v).mean(1) * 2 * math.pi).log() + N) / 2

    coarse = torch.linspace(-12, 12, 241, dtype=torch.float64)
    near = coarse[at(coarse).argmax()]
    return float(at(near + torch.linspace(-0.1, 0.1, 201, dtype=torch.float64)).max())


def exact(data: Dataset, seed: int) -> dict[str, Any]:
    """The best-supported width and the hull of the 1.92-nat set, by the closed form."""
    x, y = data.x_train.double(), data.y_train.double()
    log_p = torch.tensor([best_evidence(features(x, d, seed), y) for d in GRID])
    inside = [d for d, v in zip(GRID, log_p, strict=True) if v >= log_p.max() - 1.92]
    truth = best_evidence(features(x, data.planted["rotation"], seed), y)
    best = GRID[int(log_p.argmax())]
    covered = truth >= float(log_p.max()) - 1.92 or inside[0] <= data.planted["rotation"] <= inside[-1]
    return {"value": best, "low": inside[0], "high": inside[-1], "covered": covered}


def drawn_run(method: str, degrees: float, seed: int) -> dict[str, Any]:
    """One data set, one training, one interval."""
    data = drawn(degrees, seed)
    if method == "exact":
        return {"verdict": "", **exact(data, seed)}
    found = learn(data, "rff", method, generators=("rotation",), seed=seed).invariance
    w = found.widths["rotation"]
    high = math.inf if w.high is None else w.high
    row = {"value": w.value, "low": w.low, "high": w.high, "verdict": w.verdict, "notes": list(found.notes)}
    return {**row, "covered": w.low is not None and w.low <= degrees <= high, "run_seconds": found.seconds}


def shuffled(data: Dataset, seed: int) -> Dataset:
    """The same inputs, their labels in random order."""
    order = torch.randperm(len(data.y_train), generator=generator(seed))
    return replace(data, y_train=data.y_train[order], source=f"{data.source}, labels permuted")


NULLS: dict[str, Callable[[int], Dataset]] = {
    "toy": lambda seed: toy(0.0, n_test=0, seed=seed),
    "toy permuted": lambda seed: shuffled(toy(180.0, n_test=0, seed=seed), seed),
    "digits": lambda seed: replace(
        load("mnist5k", subset=500, seed=seed), x_test=torch.zeros(0, 1, 28, 28), y_test=torch.zeros(0).long()
    ),
    "digits permuted": lambda seed: shuffled(load("mnist5k", subset=500, seed=seed), seed),
}
"""Data without a planted width."""


def null_run(method: str, case: str, seed: int) -> dict[str, Any]:
    """One training on data with nothing to find."""
    found = learn(NULLS[case](seed), None, method, seed=seed).invariance
    called = sorted(name for name, w in found.widths.items() if w.verdict == "invariant")
    widths = {n: [w.value, w.low, w.high, w.verdict] for n, w in found.widths.items()}
    return {"invariant": called, "widths": widths, "notes": list(found.notes), "run_seconds": found.seconds}


PLANTED = ("rotated", "partially_rotated", "translated", "scaled")
"""Variants of digits with a planted width."""


def planted_run(method: str, variant: str, model: str, seed: int) -> dict[str, Any]:
    """One training on digits with planted widths: how many of them are inside their intervals."""
    data = load("mnist5k", variant=variant, subset=DIGITS, seed=seed)
    data = replace(data, x_test=data.x_test[:1000], y_test=data.y_test[:1000])
    found = learn(data, model, method, seed=seed).invariance
    widths = {n: [w.value, w.low, w.high, w.verdict] for n, w in found.widths.items()}
    planted = {n: w for n, w in found.widths.items() if w.planted is not None and abs(w.planted) > 0}
    inside = [
        n for n, w in planted.items() if (w.low or 0) <= (w.planted or 0) <= (math.inf if w.high is None else w.high)
    ]
    facts = {"accuracy": found.test_accuracy, "notes": list(found.notes), "run_seconds": found.seconds}
    return {"planted": {n: w.planted for n, w in planted.items()}, "inside": inside, "widths": widths, **facts}


def span(text: str) -> range:
    """100-139 as a range."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def rate(hits: Iterable[bool]) -> str:
    """Share with its binomial standard error, in per cent."""
    hits = list(hits)
    p = sum(hits) / len(hits)
    return f"{sum(hits)} of {len(hits)} ({100 * p:.0f} +- {100 * math.sqrt(p * (1 - p) / len(hits)):.0f} %)"


def main() -> None:
    """Run what is asked for; print a line for each cell and append every run to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=["exact", "invariant_weights", "lila"])
    parser.add_argument("--widths", nargs="*", type=float, default=[20, 60, 120])
    parser.add_argument("--nulls", nargs="*", default=list(NULLS), choices=list(NULLS))
    parser.add_argument("--planted", nargs="*", default=[], choices=PLANTED, help="digits with planted widths")
    parser.add_argument("--models", nargs="+", default=["cnn", "mlp"])
    parser.add_argument("--seeds", type=span, default=range(100, 140))
    parser.add_argument("--null-seeds", type=span, default=range(100, 120))
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rows: list[dict[str, Any]] = []

    def cell(label: dict[str, Any], runs: range, one: Callable[[int], dict[str, Any]], hit: str) -> None:
        found = []
        for seed in runs:
            started = time.perf_counter()
            found.append({**label, "seed": seed, **one(seed), "seconds": round(time.perf_counter() - started, 2)})
            given.out.write_text(json.dumps([*rows, *found], indent=1) + "\n")
        rows.extend(found)
        print(
            *label.values(),
            hit,
            rate(bool(r[hit]) for r in found),
            f"{sum(r['seconds'] for r in found):.0f} s",
            flush=True,
        )

    for method in given.methods:
        for degrees in given.widths:
            label = {"method": method, "planted": degrees}
            cell(label, given.seeds, lambda s, m=method, d=degrees: drawn_run(m, d, s), "covered")
        for variant in given.planted if method != "exact" else ():
            for model in given.models:
                label = {"method": method, "variant": variant, "model": model}
                runs = given.null_seeds
                cell(label, runs, lambda s, m=method, v=variant, n=model: planted_run(m, v, n, s), "inside")
        for case in given.nulls if method != "exact" else ():
            cell(
                {"method": method, "null": case},
                given.null_seeds,
                lambda s, m=method, c=case: null_run(m, c, s),
                "invariant",
            )


if __name__ == "__main__":
    main()
