"""What README.md and CONTRIBUTING.md say runs, with small budgets, on data such as the reader may have."""

import re
import sys

import numpy as np
import pytest
from PIL import Image

from pages import ROOT, commands, fences, run, run_page, small_budgets

README = ROOT / "README.md"


@pytest.fixture
def readers_data(tmp_path, monkeypatch):
    """A folder of photographs and a file of arrays, as the README calls them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for label in ("cat", "dog"):
        for k in range(6):
            path = tmp_path / "my_photos" / label / f"{k}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(path)
    np.savez(tmp_path / "data.npz", x=rng.random((20, 1, 16, 16), dtype=np.float32), y=np.arange(20) % 2)


@pytest.mark.usefixtures("short_runs")
def test_the_readme_runs_from_top_to_bottom(readers_data, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["augury"])
    small_budgets(monkeypatch)
    assert run_page(README) >= 5
    assert len([fence for fence in fences(README) if fence.kind == "python"]) >= 2


def test_pictures_and_links_of_the_readme_lead_somewhere():
    for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", README.read_text(encoding="utf-8")):
        assert (ROOT / link).exists(), link


def test_the_commands_of_contributing_name_what_exists():
    """Its Python is in test_contributing."""
    texts = [fence.text for fence in fences(ROOT / "CONTRIBUTING.md") if fence.kind == ""]
    found = [command for text in texts for command in commands(text, labelled=False)]
    assert len(found) >= 5
    for command in found:
        run(command)
