"""The toy problems: the planted width is the one that the evidence of an orbit-averaged model prefers."""

import math

import pytest
import torch

from augury.data.load import load
from augury.data.variants import ROTATIONS, toy
from refusal import refused


def log_evidence(x, y, width, length, S=40):
    """Of a Gaussian process averaged over rotations up to `width`, at its best noise and scale; exact, in float64."""
    # k(R_a x, R_b x') depends on b - a only, which for a, b uniform on [-width, width] is triangular on +-2 width.
    turn = torch.linspace(-1, 1, 2 * S + 1, dtype=torch.float64)
    weight = (1 - turn.abs()) / (1 - turn.abs()).sum()
    angle = torch.deg2rad(2 * width * turn)[:, None]
    c, s = angle.cos(), angle.sin()
    turned = torch.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1]], -1)
    K = torch.einsum("d,dij->ij", weight, torch.exp(-(torch.cdist(x, turned) ** 2) / (2 * length**2)))
    values, vectors = torch.linalg.eigh(K)
    t2 = (vectors.T @ (2.0 * y.double() - 1)) ** 2
    scale, noise = torch.tensor([0.3, 1, 3, 10, 30])[:, None, None], torch.tensor([1e-3, 0.01, 0.1, 0.3, 1])
    lam = scale * values.clamp(min=0) + noise[:, None]
    return float((-0.5 * (t2 / lam + lam.log() + math.log(2 * math.pi)).sum(-1)).max())


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_the_evidence_is_greatest_at_the_planted_width(rotation):
    data = toy(rotation, n=120, n_test=1)
    x, y = data.x_train.double(), data.y_train
    widths = (0.0, 20.0, 45.0, 65.0, 90.0, 135.0, 180.0)
    evidence = [max(log_evidence(x, y, width, length) for length in (0.3, 0.5, 0.8)) for width in widths]
    assert widths[evidence.index(max(evidence))] == rotation


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_points_and_labels(rotation):
    data = toy(rotation, n=300, n_test=50, seed=3)
    assert data.kind == "coordinates" and data.planted == {"rotation": rotation} and data.n_outputs == 2
    assert data.x_train.shape == (300, 2) and len(data.x_test) == 50
    assert 100 < int(data.y_train.sum()) < 200
    assert torch.equal(toy(rotation, n=300, n_test=50, seed=3).x_train, data.x_train)
    assert not torch.equal(toy(rotation, n=300, n_test=50, seed=4).x_train, data.x_train)


def test_turning_within_the_width_keeps_labels_and_beyond_it_flips_them():
    data = toy(45.0, n=500, n_test=1, noise=0.0)
    angle = torch.rad2deg(torch.atan2(data.x_train[:, 1], data.x_train[:, 0])).double()
    ring = (data.x_train.norm(dim=1) > 1.5).long()

    def label(degrees):
        return (torch.floor((degrees + 45) / 90).long() + ring) % 2

    assert torch.equal(label(angle), data.y_train)
    middle = 90 * torch.round(angle / 90)
    assert torch.equal(label(middle + 44), data.y_train) and torch.equal(label(middle + 46), 1 - data.y_train)


def test_by_name():
    assert load("toy").planted == {"rotation": 0.0}
    assert load("toy", variant="rotated").planted == {"rotation": 180.0}
    assert load("toy", variant="partially_rotated", subset=50).x_train.shape == (50, 2)
    refused("partially_rotated, rotated; got 'scaled'", load, "toy", variant="scaled")
    refused("one of 0, 45, 90, 180 degrees; got 60", toy, 60.0)
