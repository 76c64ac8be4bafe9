"""What is particular to each family: MLP sizes, Fixup's start, PointNet's symmetry, blindness to shifts."""

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.core.scalars import ScalarBias, ScalarScale
from augury.models.fixup import Branch, FixupBlock, FixupResNet, FixupWideResNet, WideFixupBlock
from augury.models.layers import he_normal_, seeded
from augury.models.small import CNN, MLP, PointNet, SignalCNN
from refusal import refused

FIXUP = [FixupResNet, FixupWideResNet]


def normal(*shape, seed=1):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


@pytest.mark.parametrize(("name", "activation"), [("tanh", torch.tanh), ("relu", lambda a: a.clamp(min=0))])
def test_mlp_is_its_formula(name, activation):
    net = MLP([6, 5, 3], generator(0), name).double()
    x = normal(4, 2, 3)
    W1, b1, W2, b2 = net.parameters()
    torch.testing.assert_close(net(x), activation(x.flatten(1) @ W1.T + b1) @ W2.T + b2)


@pytest.mark.parametrize("sizes", [[], [3], [3, 0, 2]])
def test_mlp_refuses_sizes_that_make_no_network(sizes):
    refused("sizes must name", MLP, sizes, generator(0))


def test_bad_activations_and_small_inputs_are_refused():
    refused("Did you mean 'tanh'", MLP, [2, 2], generator(0), "tan")
    refused("at least 12 x 12 pixels; got 28 x 11", CNN, (1, 28, 11), 10, generator(0))
    refused("at least 8 steps; got 3", SignalCNN, (100, 3), 10, generator(0))


@pytest.mark.parametrize("layer", [nn.Linear, nn.Conv1d, nn.Conv2d])
def test_seeded_layers_start_where_torch_starts_them(layer):
    sizes = (50, 400) if layer is nn.Linear else (10, 400, 5)
    ours = seeded(layer, *sizes, rng=generator(0))
    torch.manual_seed(0)
    theirs = layer(*sizes)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert p.shape == q.shape and p.requires_grad
        torch.testing.assert_close(p.std(), q.std(), rtol=0.1, atol=0)
        torch.testing.assert_close(p.abs().max(), q.abs().max(), rtol=0.02, atol=0)


def test_he_normal_has_variance_two_over_fan_out():
    weight = torch.empty(64, 32, 3, 3)
    he_normal_(weight, generator(0), factor=0.5)
    torch.testing.assert_close(weight.var(), torch.tensor(0.25 * 2 / (64 * 9)), rtol=0.05, atol=0)


def test_scalars_add_and_multiply():
    x = normal(2, 3, 4)
    bias, scale = ScalarBias().double(), ScalarScale().double()
    assert torch.equal(bias(x), x) and torch.equal(scale(x), x)
    nn.init.constant_(bias.bias, 0.3)
    nn.init.constant_(scale.scale, 0.3)
    torch.testing.assert_close(bias(x), x + 0.3)
    torch.testing.assert_close(scale(x), x * 0.3)


@pytest.mark.parametrize("network", FIXUP)
def test_fixup_branches_start_at_zero(network):
    net = network(3, 10, generator(0)).double()
    x = normal(2, 3, 8, 8)
    seen = []
    for block in net.stages:
        assert isinstance(block, Branch)
        block.register_forward_hook(lambda module, inputs, output: seen.append((module, inputs[0])))
    assert torch.equal(net(x), torch.zeros(2, 10, dtype=torch.float64))
    assert len(seen) == len(net.stages)
    for block, h in seen:
        assert h.abs().max() > 0
        assert not block.branch(h).any()


@pytest.mark.parametrize("network", FIXUP)
def test_fixup_first_convolutions_shrink_with_the_number_of_branches(network):
    rest = 2 if network is FixupResNet else 4
    for n in (1, 4):
        net = network(3, 10, generator(0), 6 * n + rest, 8)
        weight = net.stages[-1].conv1.weight
        he = (2 / (weight.shape[0] * 9)) ** 0.5
        assert float(weight.detach().std()) == pytest.approx(he * (3 * n) ** -0.5, rel=0.03)


@pytest.mark.parametrize("network", FIXUP)
def test_every_fixup_weight_has_a_gradient_after_three_steps(network):
    # At the start only the last layer has one (its zeros multiply all others), then the ends of the branches.
    net = network(3, 4, generator(0), *((8, 4) if network is FixupResNet else (10, 1)))
    x = normal(16, 3, 8, 8).float()
    y = torch.arange(16) % 5 % 4  # unbalanced, or the last bias would have no gradient
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)

    def backward():
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        return {name: float(p.grad.abs().max()) for name, p in net.named_parameters()}

    first = backward()
    assert {name for name, size in first.items() if size > 0} == {"linear.weight", "linear.bias"}
    for _ in range(3):
        optimiser.step()
        sizes = backward()
    assert all(0 < size < 100 for size in sizes.values()), sizes


def test_shortcuts_of_fixup_blocks():
    block = FixupBlock(2, 5, 2)
    block.initialise(generator(0), 1)
    x = normal(1, 2, 7, 6).float().abs()
    z = block(x)
    assert torch.equal(z[:, :2], x[:, :, ::2, ::2])
    assert z.shape == (1, 5, 4, 3) and not z[:, 2:].any()
    block = WideFixupBlock(3, 3, 1)
    block.initialise(generator(0), 1)
    x = normal(1, 3, 5, 5).float()
    assert block.shortcut is None and torch.equal(block(x), x)
    assert WideFixupBlock(3, 4, 1).shortcut is not None


@pytest.mark.parametrize(("network", "depth"), [(FixupResNet, 9), (FixupResNet, 2), (FixupWideResNet, 14)])
def test_fixup_refuses_depths_that_do_not_divide(network, depth):
    refused("depth must be 6n", network, 3, 10, generator(0), depth)


def test_pointnet_knows_neither_order_nor_repetition_of_points():
    net, x = PointNet(4, generator(0)).double(), normal(3, 20, 3)
    order = torch.randperm(20, generator=generator(2))
    assert torch.equal(net(x[:, order]), net(x))
    assert not torch.allclose(net(x[:, :, [1, 2, 0]]), net(x))  # the order of x, y, z does matter
    net, x = PointNet(4, generator(0)).double(), normal(3, 20, 3)
    torch.testing.assert_close(net(torch.cat([x, x[:, :5]], 1)), net(x))
    assert not torch.allclose(net(x[:, :10]), net(x))


@pytest.mark.parametrize(("network", "shape"), [(CNN, (3, 32, 32)), (SignalCNN, (2, 40))])
def test_pooling_before_the_activation_is_the_same_function(network, shape):
    net, x = network(shape, 4, generator(0)).double(), normal(5, *shape).requires_grad_()
    order = [name for name, _ in net.named_children()]
    for k in ("1", "2"):  # back to the order of the paper: activation, then pooling
        at = order.index(f"pool{k}")
        order[at : at + 2] = reversed(order[at : at + 2])
    paper = nn.Sequential(*[net.get_submodule(name) for name in order])
    assert isinstance(paper[1], nn.Tanh | nn.ReLU)
    assert torch.equal(net(x), paper(x))
    ours, theirs = (torch.autograd.grad(f(x).square().sum(), [x, *net.parameters()]) for f in (net, paper))
    torch.testing.assert_close(ours, theirs)


def test_no_network_is_blind_to_shifts():
    signal = torch.zeros(1, 1, 64, dtype=torch.float64)
    signal[..., 10:14] = 1
    net = SignalCNN((1, 64), 3, generator(0)).double()
    assert not torch.allclose(net(signal), net(signal.roll(32, -1)), atol=1e-3)
    image = torch.zeros(1, 1, 64, 64, dtype=torch.float64)
    image[..., 10:18, 10:18] = 1
    net = CNN((1, 64, 64), 3, generator(0)).double()
    assert not torch.allclose(net(image), net(image.roll(28, -1)), atol=1e-3)
