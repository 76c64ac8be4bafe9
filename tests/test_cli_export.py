"""`augury export`, and the way back: what one run learned, another takes as given."""

import json

import numpy as np
import pytest

from augury.cli.main import main
from augury.export.policy import Policy

QUICK = ["--epochs", "1", "-S", "2", "--batch", "8", "--model", "mlp5", "-q"]
QUICK += ["--set", "samples_eval=2", "--set", "evidence_below=9"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, short_runs):
    """A folder with data and one run."""
    place = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    for name, size in (("small", 12), ("large", 24)):
        x, y = rng.random((24, size, size), dtype=np.float32), np.arange(24) % 2
        np.savez(place / f"{name}.npz", x=x, y=y)
    np.savez(place / "signals.npz", x=rng.random((24, 2, 16), dtype=np.float32), y=np.arange(24) % 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        words = ["learn", "small.npz", *QUICK, "-g", "translation,rotation", "--run", "a", "--no-baseline"]
        patch.setattr("sys.argv", ["augury", *words, "--set", "burn_in=0"])
        with pytest.raises(SystemExit):
            main()
    return place


@pytest.fixture
def augury(augury, monkeypatch, folder):
    monkeypatch.chdir(folder)
    return augury


@pytest.mark.parametrize("library", ["kornia", "torchvision", "albumentations"])
def test_code_goes_to_standard_output_and_compiles(augury, library):
    code, out, err = augury("export", "a", "--to", library)
    assert code == 0 and err == ""
    compile(out, "policy.py", "exec")
    assert "rotation" in out and "policy = " in out


def test_a_file_is_written_where_one_is_named_or_only_sure_widths(augury, folder):
    code, out, err = augury("export", "a", "--to", "json", "--out", "p.json")
    assert code == 0 and out == "" and "Written to p.json" in err
    assert Policy.read(folder / "p.json") == Policy.read(folder / "a")
    code, out, _ = augury("export", "a", "--to", "json", "--out", "p.json", "--json", "-q")
    assert json.loads(out) == {"file": "p.json", "left_out": []}
    values = json.loads(augury("export", "a", "--to", "json", "--sure")[1])
    assert all(width["verdict"] == "invariant" for width in values["widths"].values())


def test_the_model_becomes_a_program_that_an_audit_takes(augury, folder):
    code, out, _ = augury("export", "a", "--to", "torch", "--json", "-q")
    written = json.loads(out)
    assert code == 0 and written["program"] == "a/exported/model.pt2"
    words = ["-g", "rotation", "-w", "rotation=20", "--images", 6, "--levels", 1, "--no-corruptions"]
    code, out, _ = augury("audit", written["program"], "small.npz", *words, "--trust", "--json", "-q")
    assert code == 0 and json.loads(out)["group"] == "rotation" and 2 <= json.loads(out)["images"] <= 6


def test_another_run_takes_the_policy_as_given(augury, folder):
    policy = Policy.read(folder / "a")
    augury("export", "a", "--to", "json", "--out", "p.json", "-q")
    words = ["--policy", "p.json", *QUICK, "--no-baseline", "--json"]
    found = json.loads(augury("learn", "small.npz", *words, "--run", "b")[1])
    assert found["method"] == "augmented"
    for name, width in policy.widths.items():
        assert found["widths"][name]["value"] == pytest.approx(width.value, rel=1e-4)
        assert found["widths"][name]["verdict"] == "given"
    doubled = json.loads(augury("learn", "large.npz", *words, "--run", "c")[1])["widths"]
    assert doubled["translate_x"]["value"] == pytest.approx(2 * policy.widths["translate_x"].value, rel=1e-4)
    assert doubled["rotation"]["value"] == pytest.approx(policy.widths["rotation"].value, rel=1e-4)


def test_a_policy_for_other_data_is_refused(augury):
    code, _, err = augury("learn", "signals.npz", "--policy", "a", "--epochs", "1", "-q")
    assert code == 2 and "kind 'image'; these are of kind 'signal'" in err


def test_curves_for_tensorboard(augury, folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    code, _, err = augury("learn", "small.npz", *QUICK, "--run", "d", "--tensorboard", "tb", "--no-baseline")
    assert code == 0, err
    assert "width/rotation (deg)" in EventAccumulator(str(folder / "tb")).Reload().Tags()["scalars"]
