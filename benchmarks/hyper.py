"""Cost of generated weights: their share of a training step, and of inference once materialised (paper C).

    python benchmarks/hyper.py [--batch 128] [--repeats 5] [--write]

A step of pre-training draws two views per image for each of three descriptors, generates weights, passes forward and
back, and updates. "generate" is the generator's forward and backward pass alone, for the same three descriptors. The
materialised network is compared with the plain encoder that it is a copy of. One thread.
"""

import argparse
import json
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from timing import best_of, machine

from augury.config.hyper import AmortizeConfig, corners
from augury.core.rng import generator
from augury.methods.hyper.groups import parse_groups
from augury.methods.hyper.pretraining import Contrastive
from augury.methods.hyper.views import Views
from augury.models.hypernetwork import HyperExtractor
from augury.models.networks import build_encoder

RESULT = Path(__file__).parents[1] / "docs" / "results" / "hyper.json"
CASES = (("conv16", 28), ("resnet10_8", 32), ("resnet10_16", 32), ("resnet10_16", 64))


def measured(encoder: str, size: int, batch: int, repeats: int) -> dict[str, object]:
    shape, rng = (3, size, size), generator(0)
    groups, config = parse_groups("ventral,dorsal"), AmortizeConfig(encoder=encoder)
    extractor = HyperExtractor(encoder, [group.name for group in groups], shape, rng)
    learner = Contrastive(extractor, Views(groups), corners(2), config, rng)
    x = torch.rand(batch, *shape, generator=rng)
    y, i = torch.zeros(batch, 1), torch.tensor(corners(2))
    toward = {name: torch.ones_like(theta) for name, theta in extractor.generate(i).items()}

    def generate() -> None:
        theta = extractor.generate(i)
        torch.autograd.backward(list(theta.values()), list(toward.values()))

    extractor.calibrate(x)
    plain, made = build_encoder(encoder, shape, rng).eval(), extractor.materialise(i[0])
    extractor.calibrate(None)
    cases = {
        "step": lambda: learner.train_step(x, y, rng),
        "generate": generate,
        "plain": torch.no_grad()(lambda: plain(x)),
        "materialised": torch.no_grad()(lambda: made(x)),
    }
    best_of(cases, 1)
    best = best_of(cases, repeats)
    return {
        "encoder": encoder,
        "size": size,
        "batch": batch,
        "milliseconds": {name: round(1e3 * t, 1) for name, t in best.items()},
        "generate_share": round(best["generate"] / best["step"], 4),
        "materialised_over_plain": round(best["materialised"] / best["plain"], 3),
        "generated_weights": sum(theta[0].numel() for theta in toward.values()),
        "parameters": sum(p.numel() for p in extractor.parameters()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write docs/results/hyper.json")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = [measured(encoder, size, given.batch, given.repeats) for encoder, size in CASES]
    table = Table("encoder", "pixels", "step", "generate", "share", "plain", "materialised")
    for row in rows:
        ms = row["milliseconds"]
        share = f"{100 * row['generate_share']:.1f} %"
        times = [f"{ms[name]} ms" for name in ("plain", "materialised")]
        table.add_row(row["encoder"], str(row["size"]), f"{ms['step']} ms", f"{ms['generate']} ms", share, *times)
    Console().print(table)
    if given.write:
        RESULT.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
