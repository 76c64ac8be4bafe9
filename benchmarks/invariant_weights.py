"""Seconds per step of an orbit-averaged shallow network: ours compared with warping every filter in plain torch.

    python benchmarks/invariant_weights.py            # a table; batch 128, S = 32, 1,024 features
    python benchmarks/invariant_weights.py --json     # the figures as JSON
    python benchmarks/invariant_weights.py --check    # also fail (status 1) below 3 times faster

A step averages the features of a batch over S views, takes the expected log-likelihood under a posterior with full
covariances, and differentiates it in the width (rff) and in the first layer too (relu). "plain" is the paper's
construction: S copies of every filter, a grid for each by `F.affine_grid`, `F.grid_sample`, one product.
Everything after the features is the same. They alternate, and the best of several runs is reported.
"""

import argparse
import json
from functools import partial

import torch
import torch.nn.functional as F
from timing import best_of, machine
from torch import Tensor

from augury.core.rng import generator
from augury.evidence.elbo import Elbo
from augury.evidence.likelihoods import Categorical
from augury.evidence.posterior import OutputPosterior
from augury.models.shallow import Relu, Rff, ShallowOrbit
from augury.transforms.affine2d import Affine2d
from augury.transforms.affine_matrices import inverse_affine

SHAPE, CLASSES, FASTER = (1, 28, 28), 10, 3.0


def plain_features(orbit: ShallowOrbit, x: Tensor, eps: Tensor) -> Tensor:
    net, (C, H, W), S = orbit.net, SHAPE, eps.shape[1]
    T = inverse_affine(orbit.transform.matrices(eps)[0]).repeat_interleave(net.units, dim=0)
    copies = net.filters.view(-1, C, H, W).repeat(S, 1, 1, 1)
    grid = F.affine_grid(T, list(copies.shape), align_corners=False)
    filters = F.grid_sample(copies, grid, align_corners=False).flatten(1)
    a = F.linear(x.flatten(1), filters, net.bias.repeat(S))
    return net.activate(a.unflatten(1, (S, -1))).mean(1)


class Case:
    """One network at the paper's sizes, and the ways to take a step."""

    def __init__(self, kind: type, arguments: argparse.Namespace) -> None:
        B, self.S = arguments.batch, arguments.samples
        transform = Affine2d(SHAPE[1:], "rotation", "stratified")
        transform.set_widths({"rotation": 90.0})
        net = kind(SHAPE, CLASSES, generator(0), units=arguments.units)
        self.orbit = ShallowOrbit(net, transform, self.S)
        self.posterior = OutputPosterior(net.output)
        self.posterior.scale.requires_grad_(False)
        self.bound = Elbo(self.orbit, self.posterior, Categorical(), 60_000)
        self.x = torch.rand(B, *SHAPE, generator=generator(1))
        self.y = torch.arange(B) % CLASSES
        hidden = [p for p in net.parameters() if p is not net.output.weight]
        self.wanted = [transform.eta, *hidden]

    def step(self, way: str) -> None:
        eps = self.orbit.transform.noise(1 if way != "input" else len(self.x), self.S, generator(2))
        features = plain_features if way == "plain" else partial(ShallowOrbit.mean_features, side=way)
        phi = features(self.orbit, self.x, eps)
        torch.autograd.grad(self.bound.log_likelihood(phi, self.y, generator(3)), self.wanted)


def agree(case: Case) -> None:
    """Stop if the results differ: the timed work must be the same."""
    eps = case.orbit.transform.noise(1, case.S, generator(2))
    with torch.no_grad():
        plain, ours = plain_features(case.orbit, case.x, eps), case.orbit.mean_features(case.x, eps, "weight")
    torch.testing.assert_close(plain, ours, rtol=1e-3, atol=1e-4)


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, float | str]]:
    results: dict[str, dict[str, float | str]] = {}
    for name, kind in {"rff": Rff, "relu": Relu}.items():
        case = Case(kind, arguments)
        agree(case)
        ways = {way: lambda way=way, case=case: case.step(way) for way in ("input", "weight", "plain")}
        chosen = case.orbit.cheaper_side(arguments.batch)
        results[name] = {**best_of(ways, arguments.repeats), "chosen": chosen}
    return results


def show(results: dict, a: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"batch {a.batch}, S = {a.samples}, {a.units} features, threads: {a.threads}, best of {a.repeats}"
    table = Table("network", "input, s", "weight, s", "plain, s", "chosen", "faster by", title=title)
    for name, t in results.items():
        times = [f"{t[way]:.3f}" for way in ("input", "weight", "plain")]
        ratio = f"{t['plain'] / t[t['chosen']]:.1f} x"
        table.add_row(name, *times, t["chosen"], ratio)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--samples", type=int, default=32, help="views per input (S)")
    parser.add_argument("--units", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--check", action="store_true", help=f"fail below {FASTER:g} times")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    results = measure(arguments)
    if arguments.json:
        print(json.dumps({"settings": vars(arguments), "machine": machine(), "seconds": results}, indent=2))
    else:
        show(results, arguments)
    slow = [name for name, t in results.items() if t["plain"] < FASTER * t[t["chosen"]]]
    if arguments.check and slow:
        raise SystemExit(f"less than {FASTER:g} times faster than plain torch: {', '.join(slow)}")


if __name__ == "__main__":
    main()
