"""Paper C's hyper-extractor: generated weights, the statistics of its norms, and what a materialised network is."""

import math

import pytest
import torch
from torch import nn

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.models.hypernetwork import HyperExtractor
from augury.models.networks import ENCODERS, build_encoder
from reference.differences import central_difference
from reference.hyper import shallow_features
from refusal import refused

GROUPS = ("rotation", "color")


def make(encoder="conv16", size=12, **options):
    return HyperExtractor(encoder, GROUPS, (3, size, size), generator(1), **options).double()


def images(n, size=12, seed=0):
    return torch.rand(n, 3, size, size, generator=generator(seed), dtype=torch.float64)


def at(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_weights_follow_the_papers_formula(activation):
    extractor = make(activation=activation)
    g, i = extractor.weights, at(0.3, 0.8)
    h = i @ g.first.weight.T + g.first.bias
    h = h.tanh() if activation == "tanh" else h.clamp(min=0)
    theta = extractor.generate(i[None])["0.weight"][0]
    assert torch.allclose(theta.flatten(), h @ g.w2[0] + g.b2[0], atol=1e-12)
    assert (g.w2[0].shape, theta.shape) == ((40, 1200), (16, 3, 5, 5))  # the paper's sizes


def test_resnets_have_an_output_layer_for_each_convolution_and_18_is_the_usual_one():
    extractor = make("resnet10_8", 16)
    modules = build_encoder("resnet10_8", (3, 16, 16), generator(0)).modules()
    convolutions = [module for module in modules if isinstance(module, nn.Conv2d)]
    assert [w.shape for w in extractor.weights.w2] == [(64, c.weight.numel()) for c in convolutions]
    assert [tuple(t.shape[1:]) for t in extractor.generate(at(1, 0)[None]).values()] == [
        tuple(c.weight.shape) for c in convolutions
    ]
    net = build_encoder("resnet18", (3, 224, 224), generator(0))
    assert sum(p.numel() for p in net.parameters()) == 11_176_512
    assert net(torch.zeros(1, 3, 224, 224).expand(2, -1, -1, -1)).shape == (2, 512)


def test_first_weights_have_hes_variance_whatever_the_descriptor():
    corners = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=torch.float64)
    for name, theta in make("resnet10_16", 16).generate(corners).items():
        he = 2 / math.prod(theta.shape[2:])
        assert float(theta.detach().var() / he) == pytest.approx(1, abs=0.15), name
    assert (theta[0] - theta[3]).norm() > 0.1 * theta[0].norm()  # the descriptor matters from the start


@pytest.mark.parametrize(("encoder", "size"), [("conv16", 12), ("resnet10_8", 16)])
@pytest.mark.parametrize("calibrated", [False, True])
def test_a_materialised_network_gives_the_same_features(encoder, size, calibrated):
    extractor, x, i = make(encoder, size), images(6, size), at(0.3, 0.8)
    if calibrated:
        extractor.calibrate(images(9, size, seed=1))
    net = extractor.materialise(i)
    assert torch.allclose(net(x), extractor(x, i), atol=1e-10)
    assert not torch.allclose(net(x), extractor(x, at(0.9, 0.8)), atol=1e-3)
    kinds = {type(m).__name__ for m in net.modules()}
    assert "MomentNorm" not in kinds and "BatchNorm2d" in kinds and not net.training
    assert sum(p.numel() for p in net.parameters()) == sum(
        p.numel() for p in build_encoder(encoder, (3, size, size), generator(0)).parameters()
    )


def test_a_materialised_network_is_apart_from_its_extractor():
    extractor, x, i = make(), images(4), at(1, 0)
    net = extractor.materialise(i)
    before = extractor(x, i).detach().clone()
    with torch.no_grad():
        for p in net.parameters():
            p.zero_()
    assert torch.equal(extractor(x, i), before)


def test_features_by_the_statistics_of_the_reference_match_a_slow_twin():
    extractor, x, reference, i = make(), images(3), images(7, seed=1), at(0.2, 0.7)
    norm = extractor.norms[0]
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2.0)
        norm.bias.uniform_(-1, 1)
    weight = extractor.generate(i[None])["0.weight"][0]
    extractor.calibrate(reference)
    slow = shallow_features(x, reference, weight, norm.weight, norm.bias)
    assert torch.allclose(extractor(x, i), slow, atol=1e-10)
    extractor.calibrate(None)
    assert torch.allclose(extractor(x, i), shallow_features(x, x, weight, norm.weight, norm.bias), atol=1e-10)


def test_neighbours_matter_until_the_extractor_is_calibrated():
    extractor, x, i = make("resnet10_8", 16), images(6, 16), at(1, 1)
    assert not torch.allclose(extractor(x, i)[:2], extractor(x[:2], i), atol=1e-4)
    extractor.calibrate(x)
    assert torch.allclose(extractor(x, i)[:2], extractor(x[:2], i), atol=1e-10)


@pytest.mark.parametrize(("encoder", "size"), [("conv16", 12), ("resnet10_8", 16)])
def test_gradients_reach_the_descriptor_through_weights_and_statistics(encoder, size):
    extractor, x = make(encoder, size), images(4, size)
    extractor.calibrate(images(5, size, seed=1))
    toward = torch.randn(4, extractor.features, generator=generator(3), dtype=torch.float64)

    i = at(0.4, 0.6).requires_grad_()

    def value():
        return (extractor(x, i) * toward).sum()

    value().backward()
    assert i.grad.norm() > 1e-3
    assert torch.allclose(i.grad, central_difference(value, i), rtol=1e-5, atol=1e-6)


def test_many_descriptors_at_once_are_each_of_them_alone(monkeypatch):
    extractor, x, i = make(), images(5), torch.rand(4, 2, generator=generator(0), dtype=torch.float64)
    alone = torch.stack([extractor(x, one) for one in i])
    generated = []
    forward = extractor.weights.forward
    monkeypatch.setattr(extractor.weights, "forward", lambda i: generated.append(len(i)) or forward(i))
    assert torch.allclose(extractor.each(x.expand(4, *x.shape), i), alone, atol=1e-12)
    assert generated == [4]  # one product for all descriptors, whatever the number of images
    different = torch.stack([images(5, seed=s) for s in range(4)])
    assert torch.allclose(extractor.each(different, i)[2], extractor(different[2], i[2]), atol=1e-12)


def test_an_encoder_of_ones_own():
    own = nn.Sequential(nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Flatten(), nn.Linear(18, 7))
    extractor = HyperExtractor(own, ("shift",), (2, 8), generator(0), d_h=5)
    x, i = torch.rand(4, 2, 8, generator=generator(1)), torch.tensor([0.5])
    assert extractor.features == 7 and extractor.encoder_name == "custom"
    assert torch.allclose(extractor.materialise(i)(x), extractor(x, i), atol=1e-6)
    assert own[0].weight.numel() == 18  # theirs is left alone


def test_descriptors_from_outside_are_checked():
    extractor = make()
    assert torch.equal(extractor.descriptor([1, 0.5]), at(1, 0.5))
    assert torch.equal(extractor.descriptor({"color": 0.25, "rotation": 1}), at(1, 0.25))
    for bad in ([1.2, 0], [0.5, -0.1], [0.5, float("nan")]):
        refused(r"\[0, 1\]", extractor.descriptor, bad)
    refused("made of numbers", extractor.descriptor, ["all", "none"])
    for bad in ([1], [1, 0, 1], [[1, 0]]):
        refused("2 entries", extractor.descriptor, bad)
    refused("Did you mean 'color'", extractor.descriptor, {"colour": 1, "rotation": 1})
    refused("'color' is missing", extractor.descriptor, {"rotation": 1})
    refused("2 entries", extractor, images(2), at(1, 0, 1))


def test_every_listed_encoder_takes_small_images_and_others_are_refused():
    for name in ENCODERS:
        assert build_encoder(name, (1, 16, 16), generator(0))(torch.zeros(2, 1, 16, 16)).ndim == 2
    with pytest.raises(InputError, match="must have convolutions"):
        HyperExtractor(nn.Sequential(nn.Flatten(), nn.Linear(12, 3)), GROUPS, (3, 2, 2), generator(0))
    refused("one row of features", HyperExtractor, nn.Conv2d(3, 4, 3), GROUPS, (3, 8, 8), generator(0))
    with pytest.raises(InputError, match="cannot take inputs"):
        HyperExtractor(nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten()), GROUPS, (3, 8, 8), generator(0))
    refused("Did you mean 'conv16'", HyperExtractor, "conv61", GROUPS, (3, 8, 8), generator(0))
    refused("at least 8 x 8", HyperExtractor, "resnet10_8", GROUPS, (3, 4, 4), generator(0))
    for groups in ((), ("a", "a"), ("",)):
        refused("invariance group", HyperExtractor, "conv16", groups, (3, 8, 8), generator(0))
