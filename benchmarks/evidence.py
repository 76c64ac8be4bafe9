"""Cost of the evidence: time in augmented training steps, memory, growth with N and C, comparison with laplace-torch.

    python benchmarks/evidence.py                       # everything, a few minutes
    python benchmarks/evidence.py speed memory          # some parts of it: speed, memory, growth, laplace
    python benchmarks/evidence.py --write               # also into docs/results/evidence_speed.json

The unit is one augmented training step in plain PyTorch on the same images: the S affine matrices are given;
affine_grid, grid_sample, forward, mean of logits, cross-entropy, backward. One eta-gradient is the whole of it: both
passes over the images (fit, preconditioner, gradient), or for the NTK bound one pass in groups. Times are the best
of several in one process, alternating; memory is measured in a fresh process for each case, with that of imports, data
and network ("baseline") listed separately.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from timing import best_of, in_fresh_process, machine, peak_memory
from torch import Tensor, nn

from augury.core.rng import generator
from augury.data.load import load
from augury.data.named import find
from augury.evidence.laplace import Laplace
from augury.evidence.likelihoods import Categorical
from augury.evidence.ntk import NtkBound
from augury.models.networks import build
from augury.models.orbit import OrbitAverage
from augury.transforms.affine2d import Affine2d

PARTS = ("speed", "memory", "growth", "laplace")
NETWORKS = ("mlp", "cnn")
WIDTHS = {"rotation": 60, "translate_x": 2, "translate_y": 2, "scale_x": 1.2, "scale_y": 1.2}
LIMITS = {"mlp": {"mc": 2.0, "ggn": 4.0, "ntk": 1.5}, "cnn": {"mc": 2.5, "ggn": 6.0, "ntk": 2.4}}
"""At most so many units."""
AUTHORS = {"mlp": {"ggn": 11.0, "ef": 5.9, "ntk": 1.5}, "cnn": {"ggn": 12.7, "ef": 4.1, "ntk": 2.4}}
"""The authors' code in units, measured on a machine of this size."""
MEMORY_LIMITS_GB = {"mlp": 1.0, "cnn": 1.6}
INSTALL = "pip install --no-deps laplace-torch asdfghjkl==0.1a4 torchmetrics lightning-utilities opt-einsum"
RESULTS = Path(__file__).parent.parent / "docs" / "results" / "evidence_speed.json"


@dataclass(frozen=True)
class Problem:
    """Real images, a network of the paper, and a distribution over transformations."""

    x: Tensor
    y: Tensor
    model: OrbitAverage
    S: int

    def batches(self, chunk: int) -> list[tuple[Tensor, Tensor]]:
        return list(zip(self.x.split(chunk), self.y.split(chunk), strict=True))


def data_name() -> str:
    return next(name for name in ("fashion_mnist", "mnist", "mnist5k") if find(name))


def problem(network: str, N: int, S: int, C: int = 10) -> Problem:
    data = load(data_name(), subset=N)
    x, y = data.x_train.clone(), data.y_train.clone()
    transform = Affine2d((28, 28))
    transform.set_widths(WIDTHS)
    net = build(network, x.shape[1:], C, generator(0))
    y = y if C == 10 else torch.arange(N) % C
    return Problem(x, y, OrbitAverage(net, transform, samples=S), S)


def training_step(p: Problem, chunk: int) -> Callable[[], None]:
    """The unit, in plain PyTorch; `chunk` images at a time add up to the same gradient."""
    transform, net = p.model.transform, p.model.net
    T = transform.matrices(transform.noise(len(p.x), p.S, generator(1))).detach()

    def run() -> None:
        net.zero_grad()
        for x, y, maps in zip(p.x.split(chunk), p.y.split(chunk), T.split(chunk), strict=True):
            copies = x.repeat_interleave(p.S, dim=0)
            grid = F.affine_grid(maps.flatten(0, 1), list(copies.shape), align_corners=False)
            views = F.grid_sample(copies, grid, align_corners=False)
            logits = net(views).unflatten(0, (len(x), p.S)).mean(1)
            (F.cross_entropy(logits, y, reduction="sum") / len(p.x)).backward()

    return run


def eta_gradient(p: Problem, output: str, chunk: int) -> Callable[[], None]:
    """Both passes over the images; for "ntk" the one pass of the bound, in groups of `chunk`."""
    batches, delta = p.batches(chunk), torch.ones(1)

    def two_passes() -> None:
        laplace = Laplace(p.model, Categorical(), output=output)
        fit = laplace.fit(batches, seeds=lambda k: k)
        laplace.gradient(batches, laplace.preconditioner(fit, delta), seeds=lambda k: k)

    def one_pass() -> None:
        NtkBound(p.model, Categorical()).gradient(batches, delta, seeds=lambda k: k)

    return one_pass if output == "ntk" else two_passes


def work(network: str, what: str, chunk: int, N: int, S: int, C: int = 10) -> Callable[[], None]:
    p = problem(network, N, S, C)
    return training_step(p, chunk) if what == "unit" else eta_gradient(p, what, chunk)


def speed(a: argparse.Namespace) -> list[dict]:
    rows = []
    for network in a.networks:
        p = problem(network, a.images, a.samples)
        cases = {("unit", a.images): training_step(p, a.images)}
        cases |= {("unit", chunk): training_step(p, chunk) for chunk in a.chunks}
        for what in ("mc", "ef", "ggn", "ntk"):
            cases |= {(what, chunk): eta_gradient(p, what, chunk) for chunk in a.chunks}
        found = best_of(cases, a.repeats)
        unit = found[("unit", a.images)]
        for (what, chunk), took in found.items():
            limit, authors = (table[network].get(what) for table in (LIMITS, AUTHORS))
            row = {"network": network, "what": what, "chunk": chunk, "seconds": took, "units": took / unit}
            rows.append(row | {"limit": limit, "authors": authors})
    return rows


def memory(a: argparse.Namespace) -> list[dict]:
    rows = []
    for network in a.networks:
        for what in ("unit", "mc", "ef", "ggn", "ntk"):
            chunk = a.images if what == "unit" else a.memory_chunk
            case = [network, what, str(chunk), str(a.images), str(a.samples)]
            size = in_fresh_process(__file__, ["--threads", str(a.threads), "--peak-of", *case])
            limit = None if what == "unit" else MEMORY_LIMITS_GB[network]
            row = {"network": network, "what": what, "chunk": chunk, "limit_gb": limit}
            size["above_baseline"] = size["peak"] - size["baseline"]
            rows.append(row | {f"{name}_gb": value / 2**30 for name, value in size.items()})
    return rows


def growth(a: argparse.Namespace) -> list[dict]:
    """Seconds of one eta-gradient (mc) for several N, the straight line through them, and a hundred classes."""
    rows = []
    sizes = [(N, 10) for N in (250, 500, 1000, 2000)] + [(1000, 100)]
    for network in a.networks:
        about = {"network": network, "chunk": a.memory_chunk}
        cases = {(N, C): work(network, "mc", a.memory_chunk, N, a.samples, C) for N, C in sizes}
        found = best_of(cases, a.repeats)
        for (N, C), took in found.items():
            rows.append(about | {"N": N, "C": C, "seconds": took, "ms_per_image": 1000 * took / N})
        slope, fixed = np.polyfit([N for N, _ in sizes[:4]], [found[size] for size in sizes[:4]], 1)
        off = max(abs(found[N, C] - fixed - slope * N) / found[N, C] for N, C in sizes[:4])
        rows.append(about | {"N": "line", "seconds": float(fixed), "ms_per_image": 1000 * float(slope), "off": off})
    return rows


def ours_at_one_view(p: Problem, output: str) -> Callable[[], None]:
    def run() -> None:
        laplace = Laplace(p.model, Categorical(), output=output)
        delta = torch.ones(1, requires_grad=True)
        laplace.log_evidence(laplace.fit(p.batches(len(p.x)), seeds=lambda k: k, gradients=False), delta).backward()

    return run


def laplace_torch(p: Problem, backend: str) -> Callable[[], None]:
    from laplace import KronLaplace, curvature
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(p.x, p.y), batch_size=len(p.x))

    def run() -> None:
        net = nn.Sequential(*deepcopy(p.model.net))  # their backends leave hooks behind
        theirs = KronLaplace(net, "classification", backend=getattr(curvature, backend))
        theirs.fit(loader)
        delta = torch.ones(1, requires_grad=True)
        theirs.log_marginal_likelihood(prior_precision=delta).backward()

    return run


def beside_laplace_torch(a: argparse.Namespace) -> list[dict]:
    """Value and prior gradient at S = 1, the paper's MLP: ours, and each backend of laplace-torch that runs."""
    p = problem("mlp", a.images, 1)
    cases = {f"augury, {output}": ours_at_one_view(p, output) for output in ("ggn", "mc")}
    failed = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if find_spec("laplace") is None:
            failed["laplace-torch"] = f"not installed: {INSTALL}"
        else:
            for backend in ("CurvlinopsGGN", "AsdlGGN", "BackPackGGN"):
                try:
                    theirs = laplace_torch(p, backend)
                    theirs()
                    cases[f"laplace-torch, {backend}"] = theirs
                except Exception as error:
                    failed[f"laplace-torch, {backend}"] = f"does not run here: {error}"
        found = best_of(cases, a.repeats)
    return [{"who": who, "S": 1, "seconds": took} for who, took in found.items()] + [
        {"who": who, "S": 1, "seconds": None, "note": note} for who, note in failed.items()
    ]


def show(report: dict[str, dict], title: str) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for part, found in report.items():
        rows = found["rows"]
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = Table(*names, title=f"{part}: {title}")
        for row in rows:
            cells = [row.get(name) for name in names]
            table.add_row(*["" if v is None else f"{v:.3f}" if isinstance(v, float) else str(v) for v in cells])
        console.print(table)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"what to measure: {', '.join(PARTS)}; default: all")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=20, help="views per image (S)")
    parser.add_argument("--chunks", type=int, nargs="+", default=[25, 50, 100], help="images in one pass")
    parser.add_argument("--memory-chunk", type=int, default=50, help="images in one pass: memory, growth")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--write", action="store_true", help="write them to docs/results/evidence_speed.json")
    parser.add_argument("--peak-of", nargs=5, metavar=("NET", "WHAT", "CHUNK", "N", "S"), help="one case")
    return parser.parse_args()


def main() -> None:
    a = arguments()
    torch.set_num_threads(a.threads)
    if a.peak_of:
        network, what, *numbers = a.peak_of
        print(json.dumps(peak_memory(work(network, what, *map(int, numbers)))))
        return
    unknown = set(a.parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"parts must be among {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")
    measures = {"speed": speed, "memory": memory, "growth": growth, "laplace": beside_laplace_torch}
    title = f"{a.images} images of {data_name()}, S = {a.samples}, {a.threads} threads, best of {a.repeats}"
    about = {"command": " ".join(["python benchmarks/evidence.py", *sys.argv[1:]]), "what": title}
    report = {}
    for part in a.parts or PARTS:
        about |= {"machine": machine(), "seconds": -time.perf_counter()}
        rows = measures[part](a)
        report[part] = about | {"seconds": round(about["seconds"] + time.perf_counter(), 1), "rows": rows}
    print(json.dumps(report, indent=1)) if a.json else show(report, title)
    if a.write:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(before | report, indent=1) + "\n")


if __name__ == "__main__":
    main()
