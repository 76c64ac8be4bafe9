"""A tied network is invariant on any input; an untied one is not."""

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.models.networks import build
from augury.models.small import MLP
from augury.models.weight_tied import WeightTied, exact_group, tie
from augury.transforms.affine2d import Affine2d
from augury.transforms.finite_groups import CyclicRotation, Flip, Translations
from refusal import refused

GROUPS = [CyclicRotation(2), CyclicRotation(4), Flip("x"), Translations(3), Translations(2, "y")]


def images(B=5, C=1):
    return torch.randn(B, C, 12, 12, generator=generator(1), dtype=torch.float64)


def nets():
    conv = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(300, 4)).double()
    return {"mlp5": build("mlp5", (1, 12, 12), 4, generator(0)).double(), "a network of one's own": conv}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.names[0])
@pytest.mark.parametrize("name", list(nets()))
def test_outputs_are_the_same_over_the_whole_orbit(group, name):
    net, x = nets()[name], images()
    orbit = group.orbit(x)
    tied = tie(net, group)
    f = torch.stack([tied(orbit[:, j]) for j in range(group.order)])
    torch.testing.assert_close(f, f[:1].expand_as(f), rtol=1e-12, atol=1e-12)
    bare = torch.stack([net(orbit[:, j]) for j in range(group.order)])
    assert (bare - bare[:1]).abs().max() > 1e-3  # the same network without tying is not invariant
    assert f.std(1).min() > 1e-5, "and it still sees its inputs"


def test_it_is_the_maximum_over_moved_weights():
    """Tying as the paper means it: rotated copies of each filter, the strongest answer counts."""
    net, x, group = MLP([144, 7, 3], generator(0), "relu").double(), images(), CyclicRotation(4)
    W, b = net.linear1.weight.reshape(7, 1, 12, 12), net.linear1.bias
    copies = torch.stack([group.element(W, group.inverse_of(j)).flatten(1) for j in range(4)])
    hidden = torch.stack([x.flatten(1) @ copy.T + b for copy in copies]).amax(0)
    torch.testing.assert_close(tie(net, group)(x), net.linear2(hidden.relu()), rtol=1e-12, atol=1e-12)


def test_ties_of_a_symmetric_input_share_the_gradient_and_weights_are_those_of_the_network():
    net, group = MLP([144, 7, 3], generator(0), "relu").double(), CyclicRotation(4)
    x = torch.zeros(1, 1, 12, 12, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(tie(net, group)(x).sum(), x)
    assert gradient.abs().max() > 0
    torch.testing.assert_close(torch.rot90(gradient, 1, (-2, -1)), gradient)
    net = build("mlp5", (1, 12, 12), 4, generator(0))
    tied = tie(net, CyclicRotation(4))
    assert {id(p) for p in net.parameters()} == {id(p) for p in tied.parameters() if p is not tied.group.eta}
    assert tie(tied, CyclicRotation(4)) is tied


@pytest.mark.parametrize("transform", [None, CyclicRotation(8), Affine2d((12, 12), "rotation")])
def test_only_groups_that_move_pixels_exactly_will_do(transform):
    refused(r"moves pixels exactly.*regularised", exact_group, transform)


def test_a_network_that_cannot_be_split_says_how_to_do_it_by_hand():
    class Own(nn.Module):
        def forward(self, x):
            return x.flatten(1)

    for net in (Own(), nn.Sequential(nn.Flatten(), nn.Linear(144, 3))):
        refused(r"WeightTied\(first, rest, group\)", tie, net, CyclicRotation(4))
    by_hand = WeightTied(nn.Flatten(), nn.Linear(144, 3).double(), Flip("x"))
    x = images()
    torch.testing.assert_close(by_hand(x), by_hand(x.flip(-1)))
