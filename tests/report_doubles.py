"""Folders as learn, audit and adapt leave them, made by hand in a moment; names that want to be code."""

import json
import math
from pathlib import Path

import numpy as np
from PIL import Image

from augury.config.learn import LearnConfig
from augury.records.exhibits import Answers, Example, Exhibits, Gallery, Route
from augury.records.results import Audit, Bound, Invariance, Measure, Point, Scores, Width, Worst

NASTY = "<script>alert('x')</script>&\"name\""
CLASSES = ("0", NASTY, "two")
AT = tuple(float(15 * k - 180) for k in range(25))


def put(path: Path, values) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = values if isinstance(values, str) else json.dumps(values, allow_nan=False)
    path.write_text(text, encoding="utf-8")


def sheet(path: Path, rows: int, columns: int, side: int = 8) -> None:
    """Every frame of its own brightness, so that a moved slider can be seen."""
    grey = np.linspace(20, 255, rows * columns).astype(np.uint8).reshape(rows, columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(grey.repeat(side, 0).repeat(side, 1)).save(path)


def answers(model: str, routes: int = 2, examples: int = 3, steps: int = 25) -> Answers:
    def along(make):
        return [[[make(r, e, s) for s in range(steps)] for e in range(examples)] for r in range(routes)]

    def chance(r, e, s):
        return round(0.5 + 0.4 * math.cos(s / 3 + e + r), 4)

    def ranked(r, e, s):
        first, second = (e, (e + 1) % 3) if s % 2 == 0 else ((e + 1) % 3, e)
        return [first, second, (e + 2) % 3]

    chances = along(lambda r, e, s: [chance(r, e, s), 0.08, 0.02])
    return Answers(model, classes=along(ranked), chances=chances, truth=along(chance))


def exhibits(kind: str = "image", task: str = "classification", galleries=None) -> Exhibits:
    pictures = [Gallery(3, 25, "picture", f"orbit{k}.png", 8, 8) for k in range(2)]
    frames = galleries or pictures
    said = answers("this model")
    if task == "regression":
        values = [[[[0.1 * s, float(e), 1.0] for s in range(25)] for e in range(3)] for _ in range(2)]
        said = Answers("this model", values=values)
    classes = task == "classification"
    labels = [{"label": CLASSES[k]} if classes else {"target": (0.5, float(k))} for k in range(3)]
    together = Route("all widths together", "", tuple(map(float, range(1, 26))), None, frames[1])
    return Exhibits(
        kind, task, "test", CLASSES if classes else (), tuple(Example(k, **labels[k]) for k in range(3)),
        (Route("rotation", "deg", AT, 90.0, frames[0]), together), said,
        draws=Gallery(3, 4, "picture", "draws.png", 8, 8) if galleries is None else None, epoch=4, tested=30,
        confusion=((9, 1, 0), (2, 7, 1), (0, 0, 10)) if classes else (),
        confused=((1, 0, 2), (0, 1, 1), (1, 2, 1)) if classes else (),
        pairs=() if classes else ((0.1, 0.2), (0.5, 0.4)),
    )  # fmt: skip


def rows(epochs: int = 5, wobble: float = 0.0) -> list[dict]:
    return [
        {
            "epoch": k,
            "loss": 2.0 / k,
            "widths": {"rotation": 30.0 * min(k, 3) + wobble, "scale_x": 1.0 + 0.02 * k},
            "log_evidence": -1000.0 + 50 * k,
            "seconds": float(k),
            **({"test_accuracy": 0.5 + 0.05 * k} if k % 2 else {}),
        }
        for k in range(1, epochs + 1)
    ]


WIDTHS = {
    "rotation": Width(88.4, "deg", 80.0, 95.5, "invariant", 90.0),
    "scale_x": Width(1.1, "factor", 1.0, None, "undecided"),
    "shear": Width(0.01, "", 0.0, 0.02, "not invariant"),
}


def learned_run(folder: Path, *, ended: bool = True, seen: bool = True, baseline: bool = True, **changes) -> Path:
    """A run of `augury learn`; changes are fields of its Invariance."""
    config = LearnConfig.for_method("lila", model="cnn", generators=("affine",), epochs=5).to_json()
    facts = {"source": f"digits {NASTY}", "train": 1200, "test": 30, "input_shape": [1, 8, 8]}
    facts["fingerprint"] = "sha256:1"
    put(folder / "config.json", {**config, "data": facts})
    put(folder / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows()))
    if ended:
        given = {"test_accuracy": 0.8667, "log_evidence": -750.0, "log_evidence_without": -1300.0, "seconds": 75.0}
        found = Invariance(WIDTHS, "lila", "cnn", facts["source"], **given | changes)
        put(folder / "invariance.json", found.to_json())
        put(folder / "command.json", {"command": f"augury learn 'x{NASTY}'", "python": "3.11"})
    if ended and seen:
        put(folder / "views" / "exhibits.json", exhibits().to_json())
        put(folder / "views" / "beside.json", answers("plain").to_json())
        for name, columns in (("orbit0", 25), ("orbit1", 25), ("draws", 4)):
            sheet(folder / "views" / f"{name}.png", 3, columns)
    if ended and baseline:
        plain = learned_run(folder / "baseline", seen=False, baseline=False, test_accuracy=0.6, seconds=9.0)
        put(plain / "config.json", {**config, "method": "plain", "data": facts})
        silent = {"routes": [], "draws": None, "answers": Answers("this model").to_json()}
        put(plain / "views" / "exhibits.json", exhibits().to_json() | silent)
    return folder


def scores(far: float, agreement: float, SI: float | None = 0.5) -> Scores:
    measure = None if SI is None else Measure(SI, 0.01)
    return Scores(Measure(3.0 * far, 0.1), far, Measure(0.2, 0.01), measure, Measure(agreement, 0.02), 200)


def audit_record(verdict: str = "sensitive", levels: int = 4) -> Audit:
    floor = scores(0.02, 0.99, 0.97)
    curve = tuple(
        Point(45.0 * k, "deg", scores(0.2 * k, 1 - 0.15 * k, 1 - 0.2 * k), floor) for k in range(1, levels + 1)
    )
    own = scores(0.6, 0.55)
    return Audit(
        f"rotation {NASTY}", own.LI, own.LI_relative, own.DI, own.SI, own.agreement, floor, 4.2, verdict, 200,
        why="Because.", advice="Do this.", sigma_max_weights={"0.weight": 2.5, "2.weight": 1.5}, curve=curve,
        accuracy=0.9, accuracy_moved=0.5, per_class={"0": scores(0.5, 0.6), NASTY: scores(0.7, 0.4)},
        drift={"noisy": scores(0.9, 0.3)}, model="runs/a", data="digits", seconds=12.0,
        worst=(Worst(7, "0", "0", NASTY, 135.0, 9.5, 0.1), Worst(8, None, "two", "0", 90.0, 8.0, None)),
    )  # fmt: skip


def audit_folder(folder: Path, gallery: Gallery | str | None = "pictures", **changes) -> Path:
    put(folder / "audit.json", audit_record(**changes).to_json())
    put(folder / "command.json", {"command": "augury audit runs/a digits -g rotation", "python": "3.11"})
    if gallery == "pictures":
        gallery = Gallery(2, 4, "picture", "worst.png", 8, 8)
        sheet(folder / "views" / "worst.png", 2, 4)
    if isinstance(gallery, Gallery):
        put(folder / "views" / "worst.json", gallery.to_json())
    return folder


def adapted_folder(folder: Path, **changes) -> Path:
    trials = [{"descriptor": {"rotation": k / 4, "color": 1 - k / 4}, "value": -100.0 + 10 * k} for k in range(5)]
    bound = Bound(0.9, 0.1, 0.5, 0.3, 1.0, 2.5, 100, 9, 0.05).to_json()
    values = {
        "descriptor": {"rotation": 1.0, "color": 0.0}, "score": 0.91, "score_name": "accuracy", "scored_on": "test",
        "held_out": 0.9, "bound": bound, "seconds": 2.5, "criterion": "evidence", "trials": trials, "N": 100,
        "words": f"invariant to rotation; sensitive to {NASTY}", "data": "photos", "extractor": "runs/extractor",
    }  # fmt: skip
    put(folder / "adaptation.json", {**values, **changes})
    return folder
