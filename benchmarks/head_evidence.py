"""Accuracy of the evidence of a softmax head on few data, compared with annealed importance sampling (nearly exact).

    python benchmarks/head_evidence.py EXTRACTOR [--seed 2] [--per-class 50] [--task rotation] [--write]

EXTRACTOR is a folder that `augury amortize` wrote; the committed figures are of the extractor behind paper C's Table 1,
seed 2 (`python -m papers hyperinvariances table1` writes it to the cache, below extractors/). For two descriptors: log
p(D) by sampling, by Laplace's method with Kronecker factors (used by the search) and with the exact Hessian, and
the variational bound (which decides on few data). Biases are at their mode, except for the bound.
"""

import argparse
import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.evidence.head_softmax import SoftmaxFit, basis, fit_softmax, normalised, variational
from augury.methods.hyper.adapt import load_extractor

RESULT = Path(__file__).parents[1] / "docs" / "results" / "head_evidence.json"
DESCRIPTORS = ([1.0, 1.0], [0.0, 1.0])
LEAPS, FIRST_STEP, WANTED = 4, 0.15, 0.8
"""Leapfrog steps of a Hamiltonian proposal, its first step size, and the acceptance that the size is steered to."""


class Annealed:
    """Chains from the prior to the posterior, in coordinates xi ~ N(0, 1) of the prior: logits = R xi + b."""

    def __init__(self, fit: SoftmaxFit, chains: int, rng: torch.Generator) -> None:
        C = fit.P.shape[1]
        self.R = (fit.head.Z[:, :-1] / math.sqrt(fit.delta)).float()
        self.b, self.Y, self.rng = fit.Theta[:, -1].float(), fit.head.Y.float(), rng
        self.xi = torch.randn(chains, self.R.shape[1], C, generator=rng)
        self.weight, self.size = torch.zeros(chains), FIRST_STEP
        self.log_p, self.slope = self.likelihood(self.xi)

    def likelihood(self, xi: Tensor) -> tuple[Tensor, Tensor]:
        log_p = (self.R @ xi + self.b).log_softmax(-1)
        return (log_p * self.Y).sum((1, 2)), self.R.T @ (self.Y - log_p.exp())

    def step(self, before: float, now: float) -> None:
        """Weight the chains for the next temperature, then move them."""
        self.weight += (now - before) * self.log_p
        p = torch.randn(self.xi.shape, generator=self.rng)
        xi, log_p, slope, h = self.xi, self.log_p, self.slope, self.size
        start = now * log_p - (xi.square() + p.square()).sum((1, 2)) / 2
        for _ in range(LEAPS):
            p = p + h / 2 * (now * slope - xi)
            xi = xi + h * p
            log_p, slope = self.likelihood(xi)
            p = p + h / 2 * (now * slope - xi)
        accept = (now * log_p - (xi.square() + p.square()).sum((1, 2)) / 2 - start).exp().clamp(max=1)
        moved = torch.rand(len(accept), generator=self.rng) < accept
        self.xi = torch.where(moved[:, None, None], xi, self.xi)
        self.slope = torch.where(moved[:, None, None], slope, self.slope)
        self.log_p = torch.where(moved, log_p, self.log_p)
        self.size *= 1.01 if float(accept.mean()) > WANTED else 0.99

    def evidence(self) -> float:
        return float(self.weight.logsumexp(0)) - math.log(len(self.weight))


def sampled(fit: SoftmaxFit, temperatures: int, chains: int, seed: int) -> float:
    annealed = Annealed(fit, chains, generator(seed))
    betas = (torch.linspace(0, 1, temperatures + 1) ** 2).tolist()
    for before, now in track(list(pairwise(betas)), "annealing"):
        annealed.step(before, now)
    return annealed.evidence()


def exact_hessian(fit: SoftmaxFit) -> float:
    """Laplace's evidence with the determinant of the whole Gauss-Newton matrix: [N C, N C]."""
    Z, P = fit.head.Z[:, :-1].double(), fit.P.double()
    N, C = P.shape
    root = torch.diag_embed(P.sqrt()) - P[:, :, None] * P.sqrt()[:, None, :]
    K = torch.einsum("ncq,mcr->nqmr", root, root).mul((Z @ Z.T / fit.delta)[:, None, :, None])
    determinant = torch.linalg.slogdet(torch.eye(N * C).double() + K.reshape(N * C, N * C))[1]
    return float(fit.head.value(fit.Theta)) - float(determinant) / 2


def task(given: argparse.Namespace) -> Dataset:
    """Coloured-rotated KMNIST with a few training images of every class."""
    data = load("kmnist10k", variant="coloured_rotated", task=given.task, seed=given.seed)
    order = torch.randperm(len(data.y_train), generator=generator(given.seed))
    keep = torch.cat([order[data.y_train[order] == c][: given.per_class] for c in range(data.n_outputs)])
    return replace(data, x_train=data.x_train[keep], y_train=data.y_train[keep])


def run(given: argparse.Namespace) -> list[dict[str, object]]:
    extractor, data = load_extractor(given.extractor), task(given)
    rows = []
    for descriptor in DESCRIPTORS:
        with extractor.calibrated(data.x_train), torch.no_grad():
            Z = normalised(extractor(data.x_train, torch.tensor(descriptor))).Z
        fit = fit_softmax(basis(Z), data.y_train, data.n_outputs, tolerance=1e-3)
        rows.append({
            "descriptor": descriptor,
            "sampling": round(sampled(fit, given.temperatures, given.chains, given.seed), 1),
            "Laplace, Kronecker": round(fit.value, 1),
            "Laplace, exact Hessian": round(exact_hessian(fit), 1),
            "variational bound": round(variational(fit), 1),
        })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extractor", type=Path)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--task", default="rotation", choices=("rotation", "digit"))
    parser.add_argument("--per-class", type=int, default=50)
    parser.add_argument("--temperatures", type=int, default=2000)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write docs/results/head_evidence.json")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rows = run(given)
    table = Table(title=f"log p(D), {given.per_class} per class, {given.task} prediction")
    for column in rows[0]:
        table.add_column(column)
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console().print(table)
    if given.write:
        settings = {"seed": given.seed, "task": given.task, "per_class": given.per_class}
        RESULT.write_text(json.dumps([{**settings, **row} for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
