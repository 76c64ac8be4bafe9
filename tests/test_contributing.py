"""The examples of CONTRIBUTING.md do what the page says."""

import re
from pathlib import Path

import pytest
import torch

from augury.config.learn import LearnConfig
from augury.core.rng import generator
from augury.models.networks import NETWORKS
from augury.models.small import MLP
from augury.transforms.affine2d import AffineCoordinates

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def example(name):
    """Run the one example that defines `name`, and return what it defines."""
    (block,) = [code for code in re.findall(r"```python\n(.*?)```", PAGE, re.S) if f" {name}(" in code]
    names = {"__name__": "example"}
    exec(block, names)
    return names


def test_transformation():
    gain = example("Gain")["Gain"]()
    gain.set_widths({"gain": 2.0})
    x = torch.ones(3, 1, 5)
    views = gain(x, 400, generator(0))
    assert views.shape == (3, 400, 1, 5)
    assert 1.9 < views.max() <= 2.0 and 0.5 <= views.min() < 0.53


def test_network(monkeypatch):
    monkeypatch.setattr("augury.models.networks.NETWORKS", table := dict(NETWORKS))
    example("linear")
    assert "linear" in table and "linear" not in NETWORKS


def test_method():
    config = LearnConfig(samples=4, rate=0.05)
    net, transform = MLP([2, 8, 2], generator(0)), AffineCoordinates("rotation")
    learner = example("Jointly")["Jointly"](net, transform, config, "classification", 50)
    transform.set_widths({"rotation": 90.0})
    x = torch.randn(50, 2, generator=generator(1))
    y = (x[:, 0] > 0).long()
    losses = [learner.train_step(x, y, generator(step)) for step in range(60)]
    assert losses[-1] < 0.6 * losses[0]
    assert transform.describe()["rotation"] < 60  # the labels know left from right, so the width has to fall


NAMED = re.findall(r"`((?:tests|core|models|transforms|methods|training)/[\w/]+\.py)`", PAGE)


@pytest.mark.parametrize("path", sorted(set(NAMED)))
def test_files_that_the_page_names_exist(path):
    assert (ROOT / path).exists() or (ROOT / "src" / "augury" / path).exists()
