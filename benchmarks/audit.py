"""Cost of an audit: paper D's five-layer MLP on MNIST images over C_4, in units of the bare passes it needs.

    python benchmarks/audit.py                # a table; 10,000 real digits (5,000 twice without MNIST)
    python benchmarks/audit.py --json         # the figures as JSON
    python benchmarks/audit.py --check        # also fail (status 1) beyond the limits

The unit is plain PyTorch: forward of every image and of its three rotations, backward of the largest logit to the
pixels, in batches of the same size. "whole" is all of `augury.audit`: views, noise floor, four corrupted copies,
spectrum. Times are the best of several in one process, alternating; memory in a fresh process for each number of
images, above what imports, data and network hold.
"""

import argparse
import json

import torch
from timing import best_of, in_fresh_process, machine, peak_memory

from augury.auditing.audit import audit
from augury.core.rng import generator
from augury.data.load import load
from augury.data.named import find
from augury.models.networks import build

N, BATCH = 10_000, 512
LIMITS = {"whole": 3.0, "memory_growth": 1.2}
"""At most so many units; peak memory of four times the images at most so many times that of one."""
PARTS = {"views": {"floor_images": 2, "corruptions": False, "jacobian_images": 0}, "whole": {}}


def images(n: int) -> torch.Tensor:
    data = load("mnist" if find("mnist") else "mnist5k")
    x = data.x_test if find("mnist") else torch.cat([data.x_train, data.x_test] * 2)
    return x[:n].clone()


def network() -> torch.nn.Module:
    return build("mlp5", (1, 28, 28), 10, generator(0)).eval()


def bare(net: torch.nn.Module, x: torch.Tensor) -> None:
    """The passes that LI, DI, SI and agreement require."""
    for part in x.split(BATCH):
        for quarter in range(4):
            view = torch.rot90(part, quarter, (-2, -1)).requires_grad_()
            torch.autograd.grad(net(view).max(1).values.sum(), view)


def speed(repeats: int) -> dict[str, float]:
    net, x = network(), images(N)
    cases = {"bare": lambda: bare(net, x)}
    for name, settings in PARTS.items():
        cases[name] = lambda settings=settings: audit(net, x, "C4", **settings)
    times = best_of(cases, repeats)
    return {**times, **{f"{name}_in_units": times[name] / times["bare"] for name in PARTS}}


def memory(n: int) -> dict[str, int]:
    net, x = network(), images(N)
    audit(net, x[:100], "C4")  # whatever torch makes once
    part = x[:n]
    return peak_memory(lambda: audit(net, part, "C4"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory_of:
        print(json.dumps(memory(given.memory_of)))
        return
    found = speed(given.repeats)
    peaks = {}
    for n in (N // 4, N):
        seen = in_fresh_process(__file__, ["--memory-of", str(n)])
        peaks[n] = seen["peak"] - seen["baseline"]
    found |= {f"megabytes_{n}": peak / 1e6 for n, peak in peaks.items()}
    found["memory_growth"] = peaks[N] / peaks[N // 4]
    if given.json:
        print(json.dumps({"machine": machine(), "figures": found, "limits": LIMITS}, indent=2))
    else:
        for name, value in found.items():
            print(f"{name:18s} {value:10.3f}")
    beyond = [found["whole_in_units"] > LIMITS["whole"], found["memory_growth"] > LIMITS["memory_growth"]]
    if given.check and any(beyond):
        raise SystemExit(f"beyond the limits {LIMITS}")


if __name__ == "__main__":
    main()
