"""The size of a pass: what it counts, and that it leaves the network as it was."""

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.curvature import tape as passes
from augury.curvature.tape import activations, rows_per_pass
from augury.models.networks import build


def test_activations_of_a_small_network_counted_by_hand():
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 4 * 4, 5))
    assert activations(net, torch.rand(7, 1, 6, 6)) == 48 + 48 + 48 + 5


def test_modes_and_running_statistics_are_left_alone():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout())
    net[2].eval()
    before = net[1].running_mean.clone()
    assert activations(net, torch.rand(1, 2)) == 9
    assert [m.training for m in net] == [True, True, False]
    assert torch.equal(net[1].running_mean, before)
    assert not net[0]._forward_hooks


@pytest.mark.parametrize(
    ("name", "low", "high"), [("mlp", 1000, 2000), ("cnn", 400, 2000), ("resnet_8_8", 100, 400)]
)
def test_larger_networks_get_smaller_passes(name, low, high):
    assert low <= rows_per_pass(build(name, (1, 28, 28), 10, generator(0)), torch.rand(1, 1, 28, 28)) <= high


def test_at_least_one_row(monkeypatch):
    monkeypatch.setattr(passes, "ACTIVATIONS", 1)
    assert rows_per_pass(nn.Linear(2, 3), torch.rand(4, 2)) == 1
