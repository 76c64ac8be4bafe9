"""The networks by name: the papers' counts, shapes, seeds, gradients, and inputs that they cannot take."""

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.core.scalars import ScalarBias, ScalarScale
from augury.models.networks import NETWORKS, build, that_take
from refusal import refused

IMAGE = (3, 12, 12)
SHAPES = {"toy_mlp": (2,), "signal_cnn": (2, 40), "outline_cnn": (2, 40), "pointnet": (30, 3)}
"""A small input for each network; images for those not named."""

COUNTS = [
    ("mlp", (1, 28, 28), 10, 795_010),
    ("cnn", (1, 28, 28), 10, 60_170),
    ("resnet_8_8", (3, 32, 32), 10, 18_995),
    ("resnet_8_16", (3, 32, 32), 10, 74_827),
    ("wide_resnet_16_4", (3, 32, 32), 10, 2_745_306),
    ("toy_mlp", (2,), 2, 2 * 50 + 50 + 50 * 2 + 2),
    ("mlp5", (1, 28, 28), 10, 785 * 128 + 3 * 129 * 128 + 129 * 10),
    ("rff", (1, 28, 28), 10, 10_240),
    ("relu", (1, 28, 28), 10, 785 * 1024 + 10_240),
    ("signal_cnn", (1, 427), 6, 8 * 16 + 81 * 32 + 97 * 64 + 513 * 6),
    ("outline_cnn", (1, 427), 6, 8 * 16 + 81 * 32 + (161 + 321 + 193) * 64 + 513 * 6),
    ("rff_256", (2,), 2, 512),
    ("relu_256", (2,), 2, 3 * 256 + 512),
    ("cnn", (3, 32, 32), 10, 76 * 6 + (6 * 25 + 1) * 16 + (16 * 25 + 1) * 120 + 121 * 84 + 85 * 10),
    ("cnn", (3, 200, 90), 10, 76 * 6 + (6 * 25 + 1) * 16 + (16 * 25 + 1) * 120 + 121 * 84 + 85 * 10),
    ("cnn", (1, 12, 12), 10, 26 * 6 + (6 * 9 + 1) * 16 + (16 + 1) * 120 + 121 * 84 + 85 * 10),
]


def small(name, seed=0):
    return build(name, SHAPES.get(name, IMAGE), 4, generator(seed))


def batch(name, B=3, seed=1):
    return torch.randn(B, *SHAPES.get(name, IMAGE), generator=generator(seed), dtype=torch.float64)


def shake(net, seed=2):
    """Move every weight a little, off Fixup's zeros, so that no gradient is zero by construction."""
    rng = generator(seed)
    with torch.no_grad():
        for p in net.parameters():
            size = 0.5 / p[0].numel() ** 0.5  # by what a unit sums over: activations keep their size
            p.add_(size * torch.randn(p.shape, generator=rng, dtype=p.dtype))
    return net


@pytest.mark.parametrize(("name", "shape", "n_outputs", "count"), COUNTS)
def test_number_of_weights_is_the_papers(name, shape, n_outputs, count):
    net = build(name, shape, n_outputs, generator(0))
    assert sum(p.numel() for p in net.parameters()) == count


@pytest.mark.parametrize("name", NETWORKS)
def test_each_input_has_its_own_output(name):
    net, x = shake(small(name).double()), batch(name)
    alone = torch.cat([net(row[None]) for row in x])
    assert alone.shape == (3, 4)
    torch.testing.assert_close(net(x), alone, rtol=1e-10, atol=1e-12)
    assert (alone - alone[:1]).abs().max() > 1e-6


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_come_from_the_generator_alone(name):
    before = torch.get_rng_state()
    first, again, other = (small(name, seed).state_dict() for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_one_generator_gives_two_different_networks_in_turn():
    rng = generator(0)
    first, second = (build("mlp", (4,), 2, rng).state_dict() for _ in range(2))
    assert not torch.equal(first["linear1.weight"], second["linear1.weight"])


@pytest.mark.parametrize("name", NETWORKS)
def test_parameters_stand_only_in_layers_that_the_curvature_knows(name):
    known = (nn.Linear, nn.Conv1d, nn.Conv2d, ScalarBias, ScalarScale)
    owners = {type(m) for m in small(name).modules() if any(True for _ in m.parameters(recurse=False))}
    assert owners and owners <= set(known)


@pytest.mark.parametrize("name", NETWORKS)
def test_second_derivative_matches_finite_differences(name):
    net, x = shake(small(name).double()), batch(name, B=2)
    theta = list(net.parameters())
    rng = generator(3)
    v = [torch.randn(p.shape, generator=rng, dtype=p.dtype) / p.numel() ** 0.5 for p in theta]

    def gradient():
        return torch.autograd.grad(net(x).square().sum(), theta, create_graph=True)

    Hv = torch.autograd.grad(sum((g * u).sum() for g, u in zip(gradient(), v, strict=True)), theta)
    h = 1e-8  # so small that no ReLU and no maximum switches between the two sides
    sides = []
    for step in (h, -2 * h):
        with torch.no_grad():
            for p, u in zip(theta, v, strict=True):
                p.add_(step * u)
        sides.append([g.detach() for g in gradient()])
    for exact, up, down in zip(Hv, *sides, strict=True):
        numeric = (up - down) / (2 * h)
        torch.testing.assert_close(exact, numeric, rtol=1e-4, atol=1e-5 * float(numeric.abs().max()) + 1e-7)


@pytest.mark.parametrize("name", [n for n in NETWORKS if n not in ("mlp", "mlp5", "toy_mlp", "pointnet")])
def test_convolutional_networks_take_odd_and_oblong_inputs(name):
    shape = (1, 37) if name in ("signal_cnn", "outline_cnn") else (1, 19, 45)
    assert build(name, shape, 3, generator(0))(torch.zeros(2, *shape)).shape == (2, 3)


@pytest.mark.parametrize("side", range(12, 70))
def test_cnn_takes_every_side_from_12(side):
    assert build("cnn", (1, side, side), 2, generator(0))(torch.zeros(1, 1, side, side)).shape == (1, 2)


def test_unknown_names_get_a_suggestion_and_networks_for_a_shape_can_be_asked_for():
    says = r"model must be one of .* got 'resnet_8_9'\. Did you mean 'resnet_8_8'"
    refused(says, build, "resnet_8_9", IMAGE, 10, generator(0))
    shallow = ["rff", "relu", "rff_256", "relu_256"]
    assert that_take((2,)) == ["mlp", "mlp5", "toy_mlp", *shallow]
    assert that_take((500, 3)) == ["mlp", "mlp5", "pointnet", *shallow]


@pytest.mark.parametrize(
    ("name", "shape", "says"),
    [
        ("cnn", (1, 11, 28), r"at least 12 x 12 pixels; got .*\[1, 11, 28\].*: mlp, mlp5, resnet_8_8"),
        ("cnn", (2, 100), r"images \[C, H, W\].*: mlp, mlp5, signal_cnn, outline_cnn, rff"),
        ("resnet_8_8", (3, 3, 3), r"at least 4 x 4 pixels.*: mlp, mlp5, rff"),
        ("signal_cnn", (1024, 3), r"at least 8 steps.*: mlp, mlp5, pointnet, rff"),
        ("pointnet", (1024, 2), r"point clouds \[P, 3\].*: mlp, mlp5, rff"),
        ("toy_mlp", (1, 28, 28), r"vectors \[D\].*: mlp, mlp5, cnn"),
    ],
)
def test_input_that_does_not_fit_names_the_networks_that_do(name, shape, says):
    refused(says, build, name, shape, 10, generator(0))


@pytest.mark.parametrize(("shape", "n_outputs"), [((), 10), ((0, 28, 28), 10), ((1, 28, 28), 0)])
def test_no_inputs_or_no_outputs_is_an_error(shape, n_outputs):
    refused("at least one input and one output", build, "mlp", shape, n_outputs, generator(0))
