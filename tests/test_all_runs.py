"""Every command that takes a run, on every kind of run: it works, or says truly why it cannot."""

import json
import shutil

import numpy as np
import pytest
import torch

import augury as library
from augury.core.rng import generator
from augury.data.dataset import Dataset

LEARNED = {
    "lila": {"generators": ("rotation",)},
    "last_layer": {"generators": ("rotation",)},
    "augerino": {"generators": ("rotation",)},
    "augmented": {"generators": ("rotation",), "widths": {"rotation": 30.0}},
    "data_augmented": {"generators": ("rotation",), "widths": {"rotation": 30.0}},
    "regularised": {"generators": ("rotation",), "widths": {"rotation": 30.0}},
    "weight_tied": {"generators": ("C4",)},
    "invariant_weights": {"generators": ("rotation",), "model": "relu_256"},
    "plain": {},
}
OTHERS = ("adapt", "amortize", "audit", "learn_unfinished", "amortize_unfinished")
TINY = {"epochs": 1, "batch": 16, "samples": 2, "samples_eval": 2, "evidence_below": 9.0}
QUICK = ["--epochs", 1, "-S", 2, "--set", "samples_eval=2", "--model", "mlp5", "--no-baseline", "-q"]
AUDIT = ["-g", "rotation", "--images", 4, "--levels", 1, "--no-corruptions", "-q"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory, short_runs):
    """A folder with a run of each kind, and the data that they were trained on."""
    place = tmp_path_factory.mktemp("all_runs")
    x = torch.rand(32, 1, 12, 12, generator=generator(0))
    data = Dataset(x[:24], torch.arange(24) % 2, x[24:], torch.arange(8) % 2, class_names=("cat", "dog"))
    np.savez(place / "data.npz", **{n: getattr(data, n).numpy() for n in ("x_train", "y_train", "x_test", "y_test")})
    for method, settings in LEARNED.items():
        library.learn(data, method=method, run=place / method, **{"model": "mlp5", **TINY, **settings})
    library.amortize(x, "rotation,flip", encoder="conv16", epochs=1, batch=16, out=place / "amortize")
    library.adapt(place / "amortize", data, run=place / "adapt", folds=0, steps=1)
    for name, ended in (("lila", "learn_unfinished"), ("amortize", "amortize_unfinished")):
        shutil.copytree(place / name, place / ended, ignore=shutil.ignore_patterns("model.*", "inv*", "views"))
    from augury.auditing.audit import examine
    from augury.auditing.worst import leave_audit

    leave_audit(place / "audit", examine(place / "lila", data, images=4, levels=1, corruptions=False))
    return place


def commands(run, out):
    return {
        "audit": ["audit", run, "data.npz", *AUDIT, "--out", out / "audit"],
        "export to torch": ["export", run, "--to", "torch", "--out", out / "exported", "-q"],
        "export to json": ["export", run, "--to", "json", "--out", out / "policy.json", "-q"],
        "export to kornia": ["export", run, "--to", "kornia", "--out", out / "policy.py", "-q"],
        "learn --policy": ["learn", "data.npz", "--policy", run, *QUICK, "--run", out / "learned"],
        "adapt": ["adapt", run, "data.npz", "--run", out / "adapted", "-q"],
        "report": ["report", run, "--out", out / "report.html"],
        "compare": ["compare", run, "lila", "--out", out / "both.html"],
    }


POLICY = ("export to json", "export to kornia", "learn --policy")
MODEL = ("audit", "export to torch")
REASONS = {  # what a command says where it cannot; it works everywhere else
    "adapt": {**dict.fromkeys(POLICY, "a descriptor"), "adapt": "only an extractor can be adapted"},
    "amortize": dict.fromkeys((*POLICY, *MODEL), "no single model"),
    "audit": dict.fromkeys((*POLICY, *MODEL, "adapt"), "holds an audit"),
    "learn_unfinished": dict.fromkeys((*POLICY, *MODEL, "adapt"), "has not ended"),
    "amortize_unfinished": dict.fromkeys((*POLICY, "export to torch"), "no single model")
    | dict.fromkeys(("audit", "adapt"), "has not ended"),
    **{method: {"adapt": "only an extractor can be adapted"} for method in LEARNED},
}
for kind in ("plain", "invariant_weights"):  # which learns no width in one epoch
    REASONS[kind]["learn --policy"] = "at least one width above zero"


CELLS = [(kind, command) for kind in (*LEARNED, *OTHERS) for command in (*POLICY, *MODEL, "adapt", "report", "compare")]
EXPORTED = [*LEARNED, "adapt"]  # whose programs are looked at below


@pytest.mark.parametrize(
    ("kind", "command"), [cell for cell in CELLS if cell[1] != "export to torch" or cell[0] not in EXPORTED]
)
def test_a_command_works_or_says_why_not(runs, augury, monkeypatch, tmp_path, kind, command):
    monkeypatch.chdir(runs)
    code, _, err = augury(*commands(kind, tmp_path)[command])
    said = " ".join(err.split())
    reason = REASONS[kind].get(command)
    assert "Traceback" not in err and "damaged" not in err
    if reason is None:
        assert code == 0, said
        assert any(tmp_path.iterdir())
    else:
        assert code == 2 and reason in said, said
        assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("kind", EXPORTED)
def test_an_exported_model_says_what_the_run_says(runs, augury, monkeypatch, tmp_path, kind):
    monkeypatch.chdir(runs)
    code, _, err = augury("export", kind, "--to", "torch", "--out", tmp_path / "out", "-q")
    assert code == 0 and "Traceback" not in err and "damaged" not in err, err
    x = torch.rand(5, 1, 12, 12, generator=generator(1))
    model, again = library.load_model(runs / kind), library.load_model(tmp_path / "out")
    program = torch.export.load(tmp_path / "out" / "model.pt2").module()
    assert torch.equal(again(x), model(x)) and torch.allclose(program(x), model(x), atol=1e-5)
    card = (tmp_path / "out" / "MODEL_CARD.md").read_text()
    assert "logits of: cat, dog" in card and "None" not in card and "## How well" in card


def test_all_kinds_stand_on_one_page(runs, augury, monkeypatch, tmp_path):
    monkeypatch.chdir(runs)
    code, out, _ = augury("compare", *LEARNED, *OTHERS, "--json", "--out", tmp_path / "all.html")
    kinds = [run["kind"] for run in json.loads(out)["runs"]]
    assert code == 0 and kinds[len(LEARNED) :] == ["adaptation", "extractor", "audit", "learned", "extractor"]
    html = (tmp_path / "all.html").read_text()
    assert "amortize_unfinished has not ended" in html and "learn_unfinished has not ended" in html
