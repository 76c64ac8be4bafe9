"""The examples run, with a tiny budget; each is short enough to be read in one sitting."""

import runpy
import sys
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "own_training_loop": "rotation",
    "own_transformation": "gamma: up to x",
    "time_series": "time_shift: up to",
    "point_cloud": "rotation_z: up to",
    "own_model": "BatchNorm",
    "lightning_trainer": "width/rotation",
    "fabric_loop": "rotation",
}


def test_every_example_is_run_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS)
    assert not sys.stdlib_module_names & set(SAYS)  # run as a script, each would import the others in their place


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("name", SAYS)
def test_example(name, monkeypatch, capsys):
    if name == "lightning_trainer":
        pytest.importorskip("lightning.pytorch", reason="Lightning is an extra")
        warnings.simplefilter("ignore")  # its advice
    path = EXAMPLES / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path), "1", "40"])
    runpy.run_path(str(path), run_name="__main__")
    out = capsys.readouterr().out
    assert SAYS[name] in out and "test accuracy" in out
    assert len(path.read_text().splitlines()) < 60
