"""What the curvature refuses, and what it says: the layer by name, and the ways out."""

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.curvature import dense
from augury.curvature.tape import covered_layers, last_layer, record
from augury.evidence.laplace import STRUCTURES
from augury.models.networks import NETWORKS, build
from refusal import refused


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.attend, self.head = nn.Linear(3, 4), nn.MultiheadAttention(4, 2), nn.Linear(4, 2)


class Functional(nn.Module):
    """A layer whose weight is used, but which is never called."""

    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(nn.functional.linear(x, self.hidden.weight, self.hidden.bias).tanh())


class Apart(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        with torch.no_grad():
            x = self.hidden(x)
        return self.head(x)


class Folded(nn.Module):
    """Positions folded into the first axis, so that copies and positions can no longer be told apart."""

    def __init__(self):
        super().__init__()
        self.point, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.point(x.flatten(0, 1)).unflatten(0, x.shape[:2]).mean(1))


class Odd(nn.Linear):
    """A linear layer with a forward of its own."""

    def forward(self, x):
        return super().forward(x).tanh()


def passed(net, x, S=1):
    return record(net, x, S, covered_layers(net))


def test_an_uncovered_layer_is_named_with_the_ways_out_of_which_freezing_is_one():
    with pytest.raises(InputError, match=r"layer 'attend' \(MultiheadAttention: in_proj_weight") as error:
        covered_layers(Attention())
    for word in ("Conv2d", "LayerNorm", "ntk", "last_layer", "requires_grad_"):
        assert word in str(error.value)
    net = Attention()
    net.attend.requires_grad_(False)
    assert list(covered_layers(net)) == ["embed", "head"]
    with pytest.raises(InputError, match=r"layer must be one of .*got 'embd'. Did you mean 'embed'?"):
        covered_layers(Attention(), only=["embd"])


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: nn.Sequential(nn.Linear(3, 3), Odd(3, 2)), "'1' (Odd: weight, bias)"),
        (lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))), "'0.parametrizations.weight'"),
        (lambda: nn.Sequential(prune.identity(nn.Linear(3, 2), "weight")), "'0' (Linear: bias, weight_orig)"),
    ],
)
def test_a_weight_that_is_not_the_parameter_is_not_covered(make, name):
    with pytest.raises(InputError) as error:
        covered_layers(make())
    assert name in str(error.value)


def test_layers_that_share_a_tensor_and_one_layer_under_two_names():
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    net[2].weight = net[0].weight
    refused("layers '0' and '2' share one tensor as their weight", covered_layers, net)
    layer = nn.Linear(3, 3)
    assert list(covered_layers(nn.Sequential(layer, nn.Tanh(), layer))) == ["0"]
    with pytest.raises(InputError, match=r"no trainable parameters.*requires_grad_\(True\)"):
        covered_layers(nn.Linear(3, 2).requires_grad_(False))


def test_batchnorm_couples_in_training_mode_or_without_running_statistics():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    with pytest.raises(InputError, match=r"layer '1' \(BatchNorm1d\) couples the samples") as error:
        passed(net, torch.zeros(4, 3))
    assert "eval()" in str(error.value)
    assert "swap_batchnorm" in str(error.value)
    assert passed(net.eval(), torch.zeros(4, 3)).f.shape == (4, 2)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False))
    refused("track_running_stats", passed, net.eval(), torch.zeros(4, 3))


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (Functional, (4, 3), r"layer 'hidden' has parameters but was not called.*freeze it"),
        (Apart, (4, 3), "layer 'hidden' ran without gradients"),
        (Folded, (4, 5, 3), r"layer 'point' is called with must hold the 4 rows.*\[20, 3\]"),
    ],
)
def test_layers_that_cannot_be_recorded(make, shape, message):
    refused(message, passed, make(), torch.zeros(shape), S=2)


def test_hooks_are_gone_after_an_error():
    net = Folded()
    with pytest.raises(InputError):
        passed(net, torch.zeros(4, 5, 3))
    assert not net.point._forward_hooks


def test_too_many_parameters_and_too_few_precisions(monkeypatch):
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))  # 26 parameters
    monkeypatch.setattr(dense, "LARGEST_FULL", 26)
    STRUCTURES["full"](covered_layers(net))
    monkeypatch.setattr(dense, "LARGEST_FULL", 25)
    with pytest.raises(InputError, match=r"full curvature of 26 parameters.*at most 25.*structure='kron'"):
        STRUCTURES["full"](covered_layers(net))
    structure = STRUCTURES["kron"](covered_layers(nn.Linear(3, 2)), prior="tensor")
    refused("prior='tensor' has 2 precisions for this network; got 1", structure.log_prior, torch.ones(1))


def test_last_layer_is_the_one_called_last():
    class Backwards(nn.Module):
        def __init__(self):
            super().__init__()
            self.head, self.body = nn.Linear(4, 2), nn.Linear(3, 4)

        def forward(self, x):
            return self.head(self.body(x).tanh())

    net = Backwards()
    assert last_layer(net, torch.zeros(2, 3)) == "head"
    net.head.requires_grad_(False)
    assert last_layer(net, torch.zeros(2, 3)) == "body"
    refused("no covered layer", last_layer, net.requires_grad_(False), torch.zeros(2, 3))


SHAPES = [(1, 12, 12), (3, 32, 32), (1, 28, 28), (2, 40), (12, 3), (2,)]


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_of_the_catalog_is_covered(name):
    shape = next(shape for shape in SHAPES if NETWORKS[name].fits(shape))
    net = build(name, shape, 3, generator(0))
    structure = STRUCTURES["kron"](covered_layers(net))
    tape = record(net, torch.rand(2, *shape, generator=generator(1)), 2, structure.layers)
    assert tape.f.shape == (1, 3)
    assert sum(p.numel() for b in structure.blocks for p in b.parameters) == sum(p.numel() for p in net.parameters())
