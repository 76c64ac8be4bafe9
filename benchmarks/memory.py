"""Is memory flat over a long run, and does --dry-run foresee the peak?

    python benchmarks/memory.py [--epochs 200]

Peaks are those of a process of its own for the command that is shown, with intervals, baseline and report; the
forecast is that of the same command with --dry-run. Growth compares the resident memory after a tenth of the epochs
with that of the last but one: the last also scores the whole test set.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from augury.training.progress import Progress

RESULT = Path(__file__).parents[1] / "docs" / "results" / "memory.json"
COMMANDS = {
    "mlp, 300 digits": ["mnist5k", "--subset", "300", "--model", "mlp", "-g", "rotation"],
    "cnn, 300 digits": ["mnist5k", "--subset", "300", "--model", "cnn", "-g", "rotation", "--no-baseline"],
    "shallow, 300 digits": ["mnist5k", "--subset", "300", "-m", "invariant_weights", "-g", "rotation"],
}
MAIN = "from augury.cli.main import main; main()"


def peak(words: list[str]) -> tuple[int, str]:
    """Run a command in a process of its own; return its peak of memory in bytes, and what it printed."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([sys.executable, "-c", MAIN, *words], stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if process.returncode:
        raise RuntimeError(f"{words} ended with {process.returncode}")
    return 1024 * usage.ru_maxrss, text


def compared(words: list[str], run: Path) -> dict[str, Any]:
    short = ["learn", *words, "--set", "epochs=2", "--set", "evidence_below=9", "--json", "-q", "--run", str(run)]
    foreseen = max(r["memory"] for r in json.loads(peak([*short, "--dry-run"])[1])["runs"])
    real, _ = peak(short)
    return {"command": " ".join(words), "dry_run_mb": foreseen >> 20, "real_mb": real >> 20, "ratio": foreseen / real}


class Resident(Progress):
    """Notes the resident memory after every epoch."""

    def __init__(self) -> None:
        self.pages: list[int] = []

    def epoch(self, row: Mapping[str, Any]) -> None:
        self.pages.append(int(Path("/proc/self/statm").read_text().split()[1]))


def growth(epochs: int, run: Path) -> dict[str, Any]:
    from augury.data.load import load
    from augury.methods.learn import learn

    watch, data = Resident(), load("mnist5k", subset=300)
    given = {"generators": ("rotation",), "epochs": epochs, "evidence_every": 5, "evidence_below": 9.0}
    learn(data, "mlp5", run=run, callbacks=watch, checkpoint_seconds=0.0, **given)
    tenth, last = (watch.pages[k] * os.sysconf("SC_PAGE_SIZE") / 2**20 for k in (epochs // 10, -2))
    return {
        "epochs": epochs,
        "mb_after_a_tenth": round(tenth),
        "mb_at_the_end": round(last),
        "growth": last / tenth - 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        peaks = []
        for k, (name, words) in enumerate(COMMANDS.items()):
            peaks.append({"case": name, **compared(words, Path(place) / str(k))})
            print(json.dumps(peaks[-1]), flush=True)
        flat = growth(given.epochs, Path(place) / "long")
        print(json.dumps(flat))
    given.out.write_text(json.dumps({"peaks": peaks, "growth": flat}, indent=1) + "\n")


if __name__ == "__main__":
    main()
