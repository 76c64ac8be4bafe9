"""Runs that are stopped at random moments and resumed: they must leave what a run leaves that was not, bit for bit.

    python tests/killing.py --kills 100 --signals 39 --seed 0      (make kill)

Half of the kills come after a random share of the processor seconds that the whole run takes, half at a random
operation on a file of the run, so that the writing of checkpoints, views and report is hit. SIGINT, SIGTERM and SIGHUP
come by processor seconds; they must also leave a word about resuming. Every run is a fork of this process, in which
seconds are zero. Of two processes that train together either may be killed, and the other must end by itself. Counts
and findings are kept in --out, and the same command goes on from there.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import typer

from adapt_doubles import extractor, task
from augury.cli.console import interruptible
from augury.cli.main import main as augury
from augury.training.saved_model import describe_extractor, save_model
from papers.__main__ import CONTINUE
from papers.grid import run_grid
from papers.learning import run_cell
from papers.results import Cell, read

SMALL = ["--set", "checkpoint_seconds=0", "--set", "samples_eval=2", "--batch", "20", "-q", "--model", "mlp5"]
TURN = ["-g", "rotation", *SMALL]
EVIDENCE = [*TURN, "--set", "evidence_below=9", "--set", "evidence_images=20", "--no-baseline"]
GIVEN = [*TURN, "-w", "rotation=20", "--no-baseline"]
SHALLOW = ["-g", "rotation", *SMALL[:-2], "--set", "samples=2", "--model", "rff", "--no-baseline"]
LEARN = {
    "lila": EVIDENCE,
    "last_layer": EVIDENCE,
    "augerino": [*TURN, "--no-baseline"],
    "invariant_weights": SHALLOW,
    "augmented": GIVEN,
    "data_augmented": GIVEN,
    "regularised": GIVEN,
    "weight_tied": ["-g", "C4", *SMALL, "--no-baseline"],
    "plain": ["-g", "rotation", *SMALL, "--set", "evidence_below=9"],
}
COMMANDS: dict[str, list[str]] = {
    **{name: ["learn", "a.npz", "-m", name, "--epochs", "3", *words] for name, words in LEARN.items()},
    "with its baseline": ["learn", "a.npz", "--epochs", "2", *(w for w in EVIDENCE if w != "--no-baseline")],
    "amortize": ["amortize", "a.npz", "-g", "rotation,blur", "--encoder", "conv16", "--epochs=3", "--batch=20", "-q"],
    "adapt": ["adapt", "extractor.safetensors", "task.npz", "-q", "--json"],
    "two processes": ["learn", "a.npz", "--epochs", "3", *EVIDENCE, "--devices", "2"],
}  # fmt: skip
"""Every command; adapt has no checkpoints and is begun again."""


def prepare(place: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 8, 8), dtype=np.float32), np.arange(60) % 3
    np.savez(place / "a.npz", x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:])
    net, data = extractor(), task(N=40)
    save_model(place / "extractor.safetensors", net, describe_extractor(net))
    np.savez(place / "task.npz", x_train=data.x_train, y_train=data.y_train, x_test=data.x_test, y_test=data.y_test)


def command(name: str, again: bool) -> None:
    """Run a command of the table in the folder `r`, again if it was stopped."""
    way = ["--overwrite" if name == "adapt" else "--resume"] if again else []
    sys.argv = [__file__, *COMMANDS[name], "--run", "r", *way]  # Fabric starts the second process with these words
    augury()


def grid(again: bool) -> None:
    """Run the cells of a grid that have no result yet."""
    settings = {"epochs": 2, "samples_eval": 2, "evidence_below": 9.0, "generators": ["rotation"], "batch": 20}
    cells = [Cell("a.npz", "original", "mlp5", m, seed, settings) for m in ("lila", "plain") for seed in (0, 1)]
    path = Path("r/results.jsonl")
    done = read([path])
    with interruptible(CONTINUE):
        _, failed = run_grid([cell for cell in cells if cell.key not in done], run_cell, path)
    if failed:
        raise RuntimeError(failed[0].message)


CASES: dict[str, Callable[[bool], None]] = {
    **{name: (lambda again, name=name: command(name, again)) for name in COMMANDS},
    "grid": grid,
}

OTHERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ADVICE = {"adapt": "Interrupted", "grid": CONTINUE}


def stop_the_clock() -> None:
    time.perf_counter = lambda: 0.0


def fork(case: str, place: Path, again: bool, at_event: int = 0) -> int:
    """Start a case in a child process; with `at_event` it kills itself there. The number of events goes to `events`."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, sys.path))  # a second process needs it
    signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup and a shell's & ignore signals
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(place)
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    stop_the_clock()
    count = 0

    def hook(event: str, words: tuple) -> None:
        nonlocal count
        changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir") or (event == "open" and words[1] != "r")
        if changes and words and "r/" in f"{words[0]}/":
            count += 1
            if count == at_event:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    code = 1
    try:
        CASES[case](again)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except typer.Exit as end:
        code = end.exit_code
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    sys.stdout.flush()
    Path("events").write_text(str(count))
    os._exit(code)


def ended(child: int) -> tuple[int, float]:
    """Wait for a process; return its exit code and its processor seconds."""
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def partner(child: int) -> int:
    """Return the second process that trains with one; the process itself if there is none yet."""
    others = Path(f"/proc/{child}/task/{child}/children").read_text().split()
    return int(others[-1]) if others else child


def left_alone(child: int, seconds: float = 120.0) -> bool:
    """Say whether every process that a run started has ended, after some time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.killpg(child, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def let_run(child: int, seconds: float) -> None:
    """Wait until a process has taken so many processor seconds, or has ended: other processes do not matter."""
    while True:
        facts = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        if facts[0] == "Z" or int(facts[11]) + int(facts[12]) >= seconds * os.sysconf("SC_CLK_TCK"):
            return
        time.sleep(0.002)


def contents(case: str, place: Path, checkpoints: bool = True) -> dict[str, object]:
    """Return what a run left; of a grid its results, since a line that was cut short stays in the file."""
    if case == "grid":
        return {key: json.dumps(result.to_json()) for key, result in read([place / "r/results.jsonl"]).items()}
    files = {str(p.relative_to(place / "r")): p for p in (place / "r").rglob("*") if p.is_file()}
    return {name: p.read_bytes() for name, p in files.items() if checkpoints or "checkpoint" not in name}


class Suite:
    """Reference runs, and runs that are stopped."""

    def __init__(self, place: Path, cases: list[str]) -> None:
        self.place, self.whole, self.events, self.seconds = place, {}, {}, {}
        prepare(place)
        for case in cases:
            folder = self.new(case)
            code, self.seconds[case] = ended(fork(case, folder, again=False))
            if code:
                raise RuntimeError(f"{case}: {(folder / 'log').read_text()[-2000:]}")
            self.events[case] = int((folder / "events").read_text())
            self.whole[case] = folder

    def new(self, case: str) -> Path:
        folder = Path(tempfile.mkdtemp(prefix=f"{case}-".replace(" ", "_"), dir=self.place))
        for name in ("a.npz", "extractor.safetensors", "task.npz"):
            os.link(self.place / name, folder / name)
        return folder

    def stopped(self, case: str, times: int, rng: random.Random, number: int = signal.SIGKILL) -> tuple[int, list[str]]:
        """Stop a run several times and let it end; return how often it was stopped, and what is wrong."""
        folder, wrong, stops, again = self.new(case), [], 0, False
        hard = number == signal.SIGKILL  # a signal leaves a checkpoint between two epochs
        for _ in range(times):
            by_file = hard and rng.random() < 0.5
            child = fork(case, folder, again, rng.randint(1, self.events[case]) if by_file else 0)
            if not by_file:
                let_run(child, rng.uniform(0, self.seconds[case]))
                other = hard and case == "two processes" and rng.random() < 0.5
                os.kill(partner(child) if other else child, number)
            code, _ = ended(child)
            if not left_alone(child):
                wrong.append("a process was left behind")
                os.killpg(child, signal.SIGKILL)
            again, log = True, (folder / "log").read_text()
            asked = code == 128 + number and "Interrupted" in log
            lost = hard and case == "two processes" and code == 2 and "another process of this run ended" in log
            stops += (hard and code == -signal.SIGKILL) or asked or lost
            begun = (folder / "r/config.json").exists()
            if begun and not lost and code not in (0, -signal.SIGKILL if hard else 128 + number):
                wrong.append(f"exit code {code}: {log[-600:]}")
            if code == 128 + number and (asked or begun) and ADVICE.get(case, "--resume") not in log:
                wrong.append(f"no word about resuming: {log[-200:]}")
        if ended(fork(case, folder, again))[0]:
            wrong.append(f"not resumed: {(folder / 'log').read_text()[-600:]}")
        left, whole = (contents(case, f, hard) for f in (folder, self.whole[case]))
        wrong += [
            f"differs: {name}" for name in sorted(left.keys() | whole.keys()) if left.get(name) != whole.get(name)
        ]
        if not wrong:
            shutil.rmtree(folder)
        return stops, wrong


def main() -> None:
    if "LOCAL_RANK" in os.environ:  # the second of two processes
        stop_the_clock()
        return augury()
    asked = argparse.ArgumentParser()
    asked.add_argument("--kills", type=int, default=100)
    asked.add_argument("--signals", type=int, default=39)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--only", default="")
    asked.add_argument("--out", type=Path, default=Path("runs/kill.json"))
    given = asked.parse_args()
    cases = [name for name in CASES if re.search(given.only, name)]
    place = Path(tempfile.mkdtemp(prefix="kill-"))
    done = {"seed": given.seed, "cases": cases, "kills": {}, "signals": {}}
    done |= {"runs": 0, "missed": 0, "wrong": [], "s": 0.0}
    if given.out.exists():
        before = json.loads(given.out.read_text())
        done = before if (before["seed"], before["cases"]) == (given.seed, cases) else done
    suite, started = Suite(place, cases), time.monotonic() - done["s"]
    wanted = {"kills": given.kills, "signals": given.signals}
    while left := {kind: n - sum(done[kind].values()) for kind, n in wanted.items() if n > sum(done[kind].values())}:
        k, (kind, n) = done["runs"], next(iter(left.items()))
        rng, case = random.Random(f"{given.seed} {k}"), cases[k % len(cases)]
        number = signal.SIGKILL if kind == "kills" else OTHERS[k % len(OTHERS)]
        times = min(rng.randint(1, 4), n) if kind == "kills" else 1
        stops, said = suite.stopped(case, times, rng, number)
        name = f"{case}, {number.name}"
        done[kind][name] = done[kind].get(name, 0) + stops
        done |= {"runs": k + 1, "missed": done["missed"] + times - stops, "s": time.monotonic() - started}
        for text in said:
            done["wrong"].append(f"run {k}, {name}: {text}")
            print(done["wrong"][-1], flush=True)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(done, indent=1) + "\n")
    print(json.dumps(done))
    kills, signals = (sum(done[kind].values()) for kind in ("kills", "signals"))
    print(
        f"{kills} kills and {signals} other signals in {done['runs']} runs, {len(done['wrong'])} findings, "
        f"{done['s']:.0f} s; {done['missed']} more came before the start or after the end"
    )
    shutil.rmtree(place) if not done["wrong"] else print(f"What was left is in {place}")
    sys.exit(bool(done["wrong"]))


if __name__ == "__main__":
    main()
