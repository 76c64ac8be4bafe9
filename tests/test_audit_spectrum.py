"""Largest singular values against full matrices, in float64."""

import pytest
import torch
from torch import nn

from augury.auditing.spectrum import jacobian_sigmas, largest_singular_values, weight_sigmas
from augury.core.rng import generator
from augury.models.orbit import OrbitAverage
from augury.models.small import MLP
from augury.transforms.affine2d import Affine2d
from papers.genuine.trace import SpectrumTrace
from reference import audit as naive


def images(B=6):
    return torch.rand(B, 1, 6, 6, generator=generator(1), dtype=torch.float64)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_jacobian_is_that_of_the_full_matrix(activation):
    net, x = MLP([36, 20, 20, 5], generator(0), activation).double(), images()
    full = torch.stack([torch.linalg.svdvals(naive.jacobian(net, one))[0] for one in x])
    assert full.std() > 1e-4 * full.mean()  # rows that iterate together must not share a value
    torch.testing.assert_close(jacobian_sigmas(net, x, tolerance=1e-10), full, rtol=1e-4, atol=0)


def test_a_network_that_warps_its_inputs_is_differentiated_through_the_warp():
    transform = Affine2d((6, 6), "rotation")
    transform.set_widths({"rotation": 90})
    model = OrbitAverage(MLP([36, 12, 4], generator(0)), transform, samples_eval=3).double().eval()
    x = images(1)  # the noise of an orbit average depends on the place in the batch
    full = torch.linalg.svdvals(naive.jacobian(model, x[0]))[:1]
    torch.testing.assert_close(jacobian_sigmas(model, x, tolerance=1e-10), full, rtol=1e-4, atol=0)


def test_constant_models_have_zero_and_close_values_are_told_apart():
    x = images(3)
    assert jacobian_sigmas(lambda x: torch.ones(len(x), 2), x).tolist() == [0, 0, 0]
    net = MLP([36, 8, 3], generator(0)).double()
    nn.init.zeros_(net.linear2.weight)
    assert jacobian_sigmas(net, x).tolist() == [0, 0, 0]
    D = torch.diag(torch.tensor([1.0, 0.99, 0.5], dtype=torch.float64))
    sigma = largest_singular_values(lambda v: v @ D, lambda u: u @ D, torch.ones(1, 3).double(), tolerance=1e-9)
    assert sigma.item() == pytest.approx(1, abs=1e-5)


def test_weights_are_matrices_and_convolutions_are_flattened():
    net = nn.Sequential(nn.Conv2d(2, 5, 3), nn.BatchNorm2d(5), nn.Flatten(), nn.Linear(45, 4)).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator(2)))
    values = weight_sigmas(net)
    assert set(values) == {"0.weight", "3.weight"}
    for name, module in (("0.weight", net[0]), ("3.weight", net[3])):
        assert values[name] == pytest.approx(torch.linalg.svdvals(module.weight.flatten(1))[0].item(), rel=1e-3)


def test_a_trace_notes_every_epoch():
    net = MLP([36, 8, 3], generator(0)).train()
    trace = SpectrumTrace(net, images().float())
    trace.start("plain", 2, 1, 0, {})
    trace.step(1, 1, 0.5)
    with torch.no_grad():
        net.linear2.weight.mul_(3)
    trace.epoch({"epoch": 1})
    trace.stop()
    assert [row["epoch"] for row in trace.rows] == [0, 1] and net.training
    first, last = trace.rows
    assert last["sigma_max_jacobian"] == pytest.approx(3 * first["sigma_max_jacobian"], rel=1e-3)
    assert last["sigma_max_relative"] == pytest.approx(first["sigma_max_relative"], rel=1e-3)
    f = net(images().float()).detach()
    distance = (f - f.mean(0)).square().sum().div(5).sqrt().item()
    assert last["sigma_max_relative"] == pytest.approx(last["sigma_max_jacobian"] / distance, rel=1e-4)
    assert last["sigma_max_weights"]["linear2.weight"] == pytest.approx(
        3 * first["sigma_max_weights"]["linear2.weight"], rel=1e-3
    )
