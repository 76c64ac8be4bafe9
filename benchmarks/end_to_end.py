"""Learning a rotation end to end: 1,000 fully rotated MNIST images, the paper's MLP, all six widths from 0.

    python benchmarks/end_to_end.py [--model mlp] [--epochs 75] [--seeds 1] [--write]

Prints the seconds of training, the learned rotation, the other widths and the test accuracy; then the ratio of the
same training with the widths held fixed (method "augmented", same S, epochs and batches) to it. Two threads.
"""

import argparse
import json
import math
import os
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from augury.data.load import load
from augury.data.named import find
from augury.methods.learn import learn

RESULT = Path(__file__).parents[1] / "docs" / "results" / "end_to_end.json"


def run(model: str, epochs: int, seed: int) -> dict[str, object]:
    name = "mnist" if find("mnist") else "mnist5k"
    data = load(name, variant="rotated", subset=1000, seed=seed)
    settings = {"model": model, "epochs": epochs, "seed": seed}
    learned = learn(data, method="lila", **settings)
    first = next((r["seconds"] for r in learned.metrics if r["widths"]["rotation"] >= 150), math.inf)
    training = learned.metrics[-1]["seconds"]
    fixed = learn(data, method="augmented", widths={"rotation": 180.0}, **settings)
    others = {n: round(w.value, 3) for n, w in learned.invariance.widths.items() if n != "rotation"}
    return {
        "data": f"{name} rotated, 1,000 images",
        "model": model,
        "seed": seed,
        "epochs": epochs,
        "training_seconds": round(training, 1),
        "seconds_to_150_degrees": round(first, 1),
        "rotation": round(learned.invariance.widths["rotation"].value, 1),
        "others": others,
        "test_accuracy": learned.invariance.test_accuracy,
        "fixed_seconds": round(fixed.metrics[-1]["seconds"], 1),
        "cost_ratio": round(training / fixed.metrics[-1]["seconds"], 2),
        "fixed_test_accuracy": fixed.invariance.test_accuracy,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--epochs", type=int, default=75)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="add the rows to docs/results/end_to_end.json")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rows = [run(given.model, given.epochs, seed) for seed in range(given.seeds)]
    table = Table(title="LILA end to end")
    shown = ("model", "seed", "training_seconds", "seconds_to_150_degrees", "rotation", "test_accuracy", "cost_ratio")
    for name in shown:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*[str(row[name]) for name in shown])
    Console().print(table)
    if given.write:
        machine = {"threads": given.threads, "cores": os.cpu_count()}
        before = json.loads(RESULT.read_text()) if RESULT.exists() else []
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(before + [{**row, **machine} for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
