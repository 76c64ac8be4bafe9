"""Orbit warps per second: `augury.transforms.warp` compared with plain `F.affine_grid` + `F.grid_sample`.

    python benchmarks/warp.py                # a table
    python benchmarks/warp.py --json         # the figures as JSON
    python benchmarks/warp.py --check        # also fail (status 1) if ours is slower anywhere

The plain version copies every image S times and builds S grids; both are given the same matrices T. "forward" is the
views, folded into the batch axis as a network takes them; "with gradient" adds the backward pass down to eta.
The two alternate, and the best of several runs is reported, since other load on the machine only adds time.
"""

import argparse
import json
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from augury.core.rng import generator
from augury.transforms.affine2d import Affine2d
from augury.transforms.warp import warp

CASES = {"28x28": (1, 28, 28), "32x32x3": (3, 32, 32)}


def plain(x: Tensor, T: Tensor) -> Tensor:
    (B, C, H, W), S = x.shape, T.shape[1]
    copies = x.repeat_interleave(S, dim=0)
    grid = F.affine_grid(T.flatten(0, 1), [B * S, C, H, W], align_corners=False)
    return F.grid_sample(copies, grid, align_corners=False)


def ours(x: Tensor, T: Tensor) -> Tensor:
    return warp(x, T).flatten(0, 1)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(shape: tuple[int, int, int], B: int, S: int, repeats: int) -> dict[str, dict[str, float]]:
    """Return seconds by task and way, best of `repeats`."""
    x = torch.rand(B, *shape, generator=generator(0))
    transform = Affine2d(shape[1:])
    transform.set_widths({"rotation": 90, "translate_x": 3, "scale_x": 1.3})
    eps = transform.noise(B, S, generator(1))
    T = transform.matrices(eps).detach()
    towards = torch.randn(B * S, *shape, generator=generator(2))

    def with_gradient(way: Callable[[Tensor, Tensor], Tensor]) -> None:
        torch.autograd.grad(way(x, transform.matrices(eps)), transform.eta, towards)

    tasks = {"forward": lambda way: way(x, T), "with gradient": with_gradient}
    best = {task: {"ours": float("inf"), "plain": float("inf")} for task in tasks}
    for _ in range(repeats):
        for task, run in tasks.items():
            for name, way in (("ours", ours), ("plain", plain)):
                best[task][name] = min(best[task][name], seconds(lambda run=run, way=way: run(way)))
    return best


def show(results: dict, arguments: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    a = arguments
    title = f"{a.images} images, S = {a.samples}, threads: {a.threads}, best of {a.repeats}"
    table = Table("images", "task", "ours, s", "plain, s", "ours, warps/s", "plain, warps/s", "faster by", title=title)
    warps = a.images * a.samples
    for case, tasks in results.items():
        for task, t in tasks.items():
            rates = [f"{warps / t[way]:,.0f}" for way in ("ours", "plain")]
            table.add_row(
                case, task, f"{t['ours']:.3f}", f"{t['plain']:.3f}", *rates, f"{t['plain'] / t['ours']:.2f} x"
            )
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--samples", type=int, default=20, help="views per image (S)")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--check", action="store_true", help="fail if ours is slower anywhere")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    results = {
        case: measure(shape, arguments.images, arguments.samples, arguments.repeats) for case, shape in CASES.items()
    }
    if arguments.json:
        print(json.dumps({"settings": vars(arguments), "seconds": results}, indent=2))
    else:
        show(results, arguments)
    slower = [f"{c}, {task}" for c, tasks in results.items() for task, t in tasks.items() if t["ours"] > t["plain"]]
    if arguments.check and slower:
        raise SystemExit(f"slower than plain torch: {'; '.join(slower)}")


if __name__ == "__main__":
    main()
