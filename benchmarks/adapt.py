"""Cost of adapting to a new task, compared with learning its invariance from scratch: 1,000 coloured-rotated digits.

    python benchmarks/adapt.py [--extractor runs/e] [--epochs 30] [--threads 1] [--write]

LILA trains with its default network, widths and settings on the images of digit prediction; adaptation takes the same
images, from an extractor that was pre-trained once (default: a short pre-training here; its time is shown
but not counted). The target is a twentieth of LILA's time.
"""

import argparse
import json
import os
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from augury.data.load import load
from augury.data.named import find
from augury.methods.hyper.adapt import adapt, load_extractor
from augury.methods.hyper.amortize import amortize
from augury.methods.learn import learn
from augury.models.hypernetwork import HyperExtractor

RESULT = Path(__file__).parents[1] / "docs" / "results" / "adapt.json"


def made(path: str | None, seed: int) -> tuple[HyperExtractor, float]:
    if path is not None:
        return load_extractor(path), 0.0
    done = amortize(load("mnist5k", subset=3000, seed=seed), method="multitask", epochs=4, seed=seed)
    return done.extractor, done.card.seconds


def run(given: argparse.Namespace) -> list[dict[str, object]]:
    name = "kmnist10k" if find("kmnist10k") else "mnist5k"
    extractor, pretraining = made(given.extractor, given.seed)
    data = load(name, variant="coloured_rotated", task="digit", subset=1000, seed=given.seed)
    adapted = [adapt(extractor, data, seed=given.seed).adaptation for _ in range(given.repeats)]
    best = min(adapted, key=lambda a: a.seconds)
    epochs = {} if given.epochs is None else {"epochs": given.epochs}
    done = learn(data, method="lila", seed=given.seed, **epochs)
    learned = done.invariance
    common = {"data": f"{name}, coloured-rotated digits, 1,000 images", "seed": given.seed}
    return [
        {
            **common,
            "method": "adapt",
            "seconds": round(best.seconds, 2),
            "test_accuracy": best.score,
            "learned": best.descriptor,
            "pretraining_seconds": round(pretraining, 1),
            "share_of_lila": round(best.seconds / learned.seconds, 4),
        },
        {
            **common,
            "method": "lila",
            "epochs": done.config.epochs,
            "model": learned.model,
            "seconds": round(learned.seconds, 1),
            "test_accuracy": learned.test_accuracy,
            "learned": {n: round(w.value, 2) for n, w in learned.widths.items()},
        },
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extractor", help="folder or file of an extractor for [3, 28, 28]")
    parser.add_argument("--epochs", type=int, help="epochs of LILA (default: its own)")
    parser.add_argument("--repeats", type=int, default=3, help="adaptations; the shortest is reported")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="add the rows to docs/results/adapt.json")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rows = run(given)
    table = Table(title="From 1,000 images to an invariance")
    for column in ("method", "seconds", "test_accuracy", "learned"):
        table.add_column(column.replace("_", " "))
    for row in rows:
        table.add_row(*(str(row[column]) for column in ("method", "seconds", "test_accuracy", "learned")))
    console = Console()
    console.print(table)
    console.print(f"adaptation takes {rows[0]['share_of_lila']} of LILA's time (aim: at most 0.05)")
    if given.write:
        machine = {"threads": given.threads, "cores": os.cpu_count()}
        before = json.loads(RESULT.read_text()) if RESULT.exists() else []
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(before + [{**row, **machine} for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
