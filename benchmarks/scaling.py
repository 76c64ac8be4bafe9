"""Strong and weak scaling of data parallel training, and the bytes of a step up the evidence.

    python benchmarks/scaling.py [--repeats 3]            # the best of three, into docs/results/scaling.json
    python benchmarks/scaling.py --predict                # the cost model of docs/scale.md

One process with one thread, two processes with one thread each, and one process with two threads: seconds per step on
the weights and per step up the evidence (networks by name on images of noise, whose content does not matter here).
Strong: the same batch and the same evidence sample. Weak: twice of both for two processes. Seconds are the fastest of
several, since another program can only slow one down; seconds of the processor, of the first process, do not count
waiting, so that they show how the work divides on a busy machine too. Two threads wait for each other without spinning
(OMP_WAIT_POLICY), which on a busy machine would count as work.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parents[1] / "docs" / "results" / "scaling.json"
BATCH, STEPS, CLIMBS = 100, 30, 4
EVIDENCE, ETA_STEPS, ETA_SAMPLE, VIEWS, EVIDENCE_VIEW = 200, 20, 20, 8, 2.0
"""The recipe of LILA: inputs behind the factors, steps on the widths, inputs of each, views of an input; what a view
costs there, in views of training: 1.5 with the MLP, 2.1 with the CNN."""
LAYERS, REUSE, FLOPS, BANDWIDTH, LATENCY = 10, 20, 1e11, 1.25e9, 5e-5
"""The model's network; uses of a weight per input; one core's operations per second, as measured with the MLP and the
CNN; a network of 10 Gbit/s and 50 microseconds a message, which are assumed."""
KINDS = (("one", 1, 1, 1), ("two threads", 1, 2, 1), ("strong", 2, 1, 1), ("weak", 2, 1, 2))
"""Name, processes, threads of each, and how many times the work."""
NETS = {"mlp": (1, 28, 28), "cnn": (1, 28, 28)}


def measured(net: str, batch: int, sample: int, processes: int) -> dict[str, Any] | None:
    import torch

    from augury.core.rng import generator
    from augury.core.world import world_of
    from augury.data.dataset import Dataset
    from augury.methods.prepare import prepare

    fabric = None
    if processes > 1:
        from lightning_fabric import Fabric

        fabric = Fabric(accelerator="cpu", devices=processes, strategy="ddp")
        fabric.launch()
    rng, N = generator(0), 1000
    x = torch.rand(N, *NETS[net], generator=rng)
    y = torch.randint(10, (N,), generator=rng)
    data = Dataset(x, y, x[:0], y[:0], class_names=tuple("0123456789"))
    settings = {"epochs": 1, "batch": batch, "evidence_images": sample, "evidence_samples": VIEWS}
    settings |= {"eta_steps": ETA_STEPS, "eta_images": ETA_SAMPLE * sample // EVIDENCE}
    learner = prepare(data, net, "lila", None, settings).learner
    learner.join(world := world_of(fabric))
    part = world.part(batch)
    own = slice(0, batch) if part is None else part.rows
    rng.part = part
    learner.model.train()

    def timed(call: Any, times: int) -> dict[str, float]:
        call()
        seconds, busy, total = [], [], 0
        for _ in range(times):
            world.agreed(False)
            before, began, work = world.bytes, time.perf_counter(), time.process_time()
            call()
            seconds.append(time.perf_counter() - began)
            busy.append(time.process_time() - work)
            total += world.bytes - before
        return {"seconds": min(seconds), "processor_seconds": min(busy), "bytes": total // times}

    step = timed(lambda: learner.train_step(x[:batch][own], y[:batch][own], rng), STEPS)
    rng.part = None
    climb = timed(lambda: learner.evidence.step((x, y), rng), CLIMBS)
    if world.rank:
        return None
    weights = sum(p.numel() for p in learner.model.net.parameters())
    return {
        "net": net, "weights": weights, "processes": processes, "threads": torch.get_num_threads(), "batch": batch,
        "evidence_images": sample, "step": step, "climb": climb,
    }  # fmt: skip


def run(net: str, processes: int, threads: int, times: int) -> dict[str, Any]:
    words = [net, processes, times * BATCH, times * EVIDENCE]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, __file__, "--one", *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(found, flush=True)
    return found


def predicted(W: float, P: int, N: float, per_worker: int = 100) -> dict[str, float]:
    """Return the cost model of docs/scale.md for a network of ten layers of equal width, W weights in all."""
    d, n = (W / LAYERS) ** 0.5, EVIDENCE
    factors = 2 * LAYERS * d * min(n, d)  # numbers in the rows, or in the matrices, of all factors
    view, message = 6 * W * REUSE / FLOPS, 2 * (P - 1) * LATENCY
    wire = 2 * 4 * W * (P - 1) / P / BANDWIDTH + message
    step = per_worker * view + wire
    inputs = n / min(P, n) + ETA_STEPS * ETA_SAMPLE / min(P, ETA_SAMPLE)
    decompose = 25 * min(n, d) ** 3 * -(-2 * LAYERS // min(P, 2 * LAYERS)) / FLOPS
    sent = (8 * factors / BANDWIDTH if P > 1 else 0.0) + (ETA_STEPS + 4 * 2 * LAYERS) * message
    return {
        "step": step, "waiting": wire / step, "epoch": N / (per_worker * P) * step,
        "climb": inputs * VIEWS * EVIDENCE_VIEW * view + decompose + sent,
        "climb_bytes": 4 * factors * (1 / P + 1) if P > 1 else 0.0, "memory": 16 * W + 5 * 4 * 2 * LAYERS * d * d + 5e8,
    }  # fmt: skip


def predict() -> None:
    for W in (1e5, 1e6, 1e7, 1e8):
        for P in (1, 10, 100, 1000):
            epochs = [predicted(W, P, N)["epoch"] for N in (1e4, 1e6, 1e9)]
            found = predicted(W, P, 1.0)
            times = [1e3 * found["step"], *epochs, found["climb"], found["climb_bytes"] / 1e6, found["memory"] / 1e9]
            step, *others = (f"{float(f'{t:.2g}'):,.10g}" for t in times)
            print(
                f"| 10^{len(f'{W:.0f}') - 1} | {P} | {step} | {100 * found['waiting']:.0f} % | {' | '.join(others)} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--kinds", default=",".join(kind for kind, *_ in KINDS))
    given = parser.parse_args()
    if given.predict:
        return predict()
    if given.one:
        net, *numbers = given.one
        processes, batch, sample = map(int, numbers)
        found = measured(net, batch, sample, processes)
        if found:
            print(json.dumps(found))
        return
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(given.repeats):
        for net in given.nets.split(","):
            for kind, processes, threads, times in KINDS:
                if kind in given.kinds.split(","):
                    row = {"kind": kind, **run(net, processes, threads, times)}
                    rows[net, kind] = best(rows.get((net, kind), row), row)
                    RESULT.write_text(json.dumps([*rows.values()], indent=2) + "\n", encoding="utf-8")


def best(a: Any, b: Any) -> Any:
    """Return the least of every time; all else is the same."""
    if isinstance(a, dict):
        return {name: best(a[name], b[name]) for name in a}
    return min(a, b) if isinstance(a, float) else b


if __name__ == "__main__":
    main()
