"""BatchNorm out, GroupNorm in: after the exchange every input has an output of its own."""

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.models.batchnorm import groups_for, swap_batchnorm
from refusal import refused


def convolutional():
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Conv2d(12, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    head = nn.Flatten(), nn.LazyLinear(16), nn.BatchNorm1d(16), nn.Linear(16, 3)
    net = nn.Sequential(nn.Conv2d(1, 12, 3), nn.BatchNorm2d(12, eps=1e-3), nn.ReLU(), inner, *head).double()
    net(images())
    for norm in (net[1], net[3][1], net[6]):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    return net


def images(B=4):
    return torch.randn(B, 1, 8, 8, generator=generator(1), dtype=torch.float64)


def couples(net, x):
    """Whether the output for the first input changes when it comes alone with one other."""
    return not torch.allclose(net(x)[:2], net(x[:2]), rtol=1e-9)


def test_samples_no_longer_know_each_other():
    net, x = convolutional().train(), images()
    assert couples(net, x)
    assert not couples(swap_batchnorm(net), x)


def test_parameters_are_kept_and_the_original_is_untouched():
    net = convolutional()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    swapped = swap_batchnorm(net)
    assert isinstance(net[1], nn.BatchNorm2d) and all(torch.equal(before[k], v) for k, v in net.state_dict().items())
    assert dict(swapped.named_parameters()).keys() == dict(net.named_parameters()).keys()
    for ours, theirs in zip(swapped.parameters(), net.parameters(), strict=True):
        assert torch.equal(ours, theirs) and ours is not theirs and ours.dtype == theirs.dtype
    assert [type(m) for m in (swapped[1], swapped[3][1], swapped[6])] == [nn.GroupNorm] * 3
    assert swapped[1].eps == 1e-3


def test_output_is_that_of_the_groups_by_hand():
    swapped = swap_batchnorm(nn.BatchNorm1d(8, affine=False).double())
    x = torch.randn(5, 8, generator=generator(0), dtype=torch.float64)
    parts = x.view(5, 2, 4)
    centred = parts - parts.mean(-1, keepdim=True)
    by_hand = centred / (centred.square().mean(-1, keepdim=True) + swapped.eps).sqrt()
    torch.testing.assert_close(swapped(x), by_hand.view(5, 8))


@pytest.mark.parametrize("shape", [(2, 8, 5), (2, 8, 5, 5), (2, 8, 3, 3, 3), (2, 1, 5, 5)])
def test_every_dimension_is_exchanged(shape):
    norm = {3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[len(shape)]
    swapped = swap_batchnorm(norm(shape[1]))
    assert isinstance(swapped, nn.GroupNorm)
    assert swapped(torch.randn(shape, generator=generator(0))).std() > 0.5


@pytest.mark.parametrize(
    ("channels", "groups"), [(1, 1), (3, 1), (7, 1), (8, 2), (12, 3), (22, 2), (64, 16), (512, 32), (37, 1)]
)
def test_groups_divide_the_channels(channels, groups):
    assert groups_for(channels) == groups


def test_places_modes_frozen_parameters_and_other_norms_are_kept():
    norm = nn.BatchNorm1d(8).eval().requires_grad_(False)
    net = nn.Sequential(nn.LayerNorm(8), norm, nn.InstanceNorm1d(8), norm)
    swapped = swap_batchnorm(net)
    assert swapped[1] is swapped[3] and swapped is not net and not swapped[1].training
    assert [type(m) for m in swapped] == [nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm1d, nn.GroupNorm]
    assert not any(p.requires_grad for p in swapped[1].parameters())
    alone = nn.Sequential(nn.Sequential(nn.Linear(3, 1), nn.BatchNorm1d(1)))
    refused(r"0\.1 normalises a single feature", swap_batchnorm, alone)
