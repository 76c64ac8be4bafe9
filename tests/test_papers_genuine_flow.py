"""Proposition 3.1 where it is proven, in closed form, and a network in which it does not hold."""

from itertools import pairwise

import pytest
import torch
from torch.func import functional_call, grad

from augury.core.rng import generator
from augury.transforms.finite_groups import CyclicRotation, Flip, Translations
from papers.genuine import flow
from papers.genuine.flow import displacement_moment, error_of, follow, network
from refusal import refused

X = torch.rand(5, 1, 6, 6, generator=generator(1), dtype=torch.float64)
GROUPS = [CyclicRotation(4), Translations(3), Flip("x")]


def begun(name="linear", C=4):
    net = network(name, 36, C, 0)
    return net, {key: p.detach().clone() for key, p in net.named_parameters()}


def sigma(W):
    return torch.linalg.svdvals(W)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.names[0])
def test_the_error_of_a_linear_map_is_a_trace_with_M(group):
    net, theta = begun()
    W, M = theta["1.weight"], displacement_moment(X, group)
    naive = torch.zeros(36, 36, dtype=torch.float64)
    for x in X:
        for j in range(1, group.order):
            d = (group.element(x[None], j)[0] - x).flatten()
            naive += torch.outer(d, d) / (len(X) * (group.order - 1))
    torch.testing.assert_close(M, naive)
    LI = error_of(net, X, group)
    torch.testing.assert_close(LI(theta), torch.trace(W @ M @ W.T))
    torch.testing.assert_close(grad(LI)(theta)["1.weight"], 2 * W @ M)


@pytest.mark.parametrize("name", ["linear", "deep_linear", "mlp5"])
def test_the_error_is_that_of_a_double_loop(name):
    net, theta = begun(name)
    theta = {key: 1.5 * w for key, w in theta.items()}
    total = []
    for x in X:
        f = functional_call(net, theta, (x[None],))[0]
        for k in (1, 2, 3):
            f_g = functional_call(net, theta, (torch.rot90(x, k, (-2, -1))[None],))[0]
            total.append((f - f_g).square().sum())
    torch.testing.assert_close(error_of(net, X, CyclicRotation(4))(theta), torch.stack(total).mean())


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.names[0])
def test_the_flow_of_a_linear_map_is_its_closed_form_and_no_singular_value_grows(group):
    net, theta = begun()
    M = displacement_moment(X, group)
    moments = list(follow("flow", error_of(net, X, group), theta, 60, 0.1))
    expected = flow.linear_solution(theta["1.weight"], M, [m.t for m in moments])
    there = torch.stack([m.theta["1.weight"] for m in moments])
    torch.testing.assert_close(there, expected, rtol=0, atol=1e-7)
    assert (there[-1] - there[0]).norm() > 0.1 * there[0].norm()  # it has gone somewhere
    values = sigma(there)
    assert (values[1:] <= values[:-1] + 1e-12).all()
    assert moments[-1].LI < 0.1 * moments[0].LI


def test_the_flow_ends_on_the_kernel_of_M():
    net, theta = begun()
    M = displacement_moment(X, CyclicRotation(4))
    values, vectors = torch.linalg.eigh(M)
    kernel = vectors[:, values < 1e-12]
    (end,) = flow.linear_solution(theta["1.weight"], M, [1e6])
    torch.testing.assert_close(end, theta["1.weight"] @ kernel @ kernel.T, rtol=0, atol=1e-9)
    assert error_of(net, X, CyclicRotation(4))({"1.weight": end}) < 1e-20


def test_one_step_of_the_flow_has_an_error_of_order_five():
    slope = {"w": torch.tensor([[2.0]], dtype=torch.float64)}
    errors = []
    for h in (0.2, 0.1):
        there = flow.runge_kutta(lambda theta: {"w": 2 * theta["w"]}, slope, h)["w"].item()
        errors.append(abs(there - 2 * torch.exp(torch.tensor(-2 * h, dtype=torch.float64)).item()))
    assert 28 < errors[0] / errors[1] < 36


def test_sharpness_is_the_largest_eigenvalue_of_the_hessian():
    net, theta = begun()
    M = displacement_moment(X, CyclicRotation(4))
    found = flow.sharpness(error_of(net, X, CyclicRotation(4)), theta, iterations=300)
    assert found == pytest.approx(2 * torch.linalg.eigvalsh(M)[-1].item(), rel=1e-6)


@pytest.mark.parametrize(("step", "contracts"), [(0.5, True), (1.9, True), (2.5, False)])
def test_descent_contracts_up_to_a_step_of_two_over_the_sharpness(step, contracts):
    net, theta = begun()
    moments = list(follow("descent", error_of(net, X, CyclicRotation(4)), theta, 30, step))
    largest = torch.stack([sigma(m.theta["1.weight"])[0] for m in moments])
    assert bool((largest[1:] <= largest[:-1] + 1e-12).all()) == contracts
    shrink = torch.eye(36, dtype=torch.float64) - 2 * moments[1].t * displacement_moment(X, CyclicRotation(4))
    for before, after in pairwise(moments[:4]):
        torch.testing.assert_close(after.theta["1.weight"], before.theta["1.weight"] @ shrink)


def test_two_layers_can_raise_sigma_max_under_the_flow_but_not_the_frobenius_norm():
    """dW_1/dt = -2 (W_2 W_1 n) W_2^T n^T with W_2 W_1 n = -0.8: by hand, the first entry of W_1 grows at 1.6."""
    x, net = torch.tensor([[[[1.0, 0.0]]]]), network("pair", 2, 1, 0)
    theta = {key: p.detach() for key, p in net.named_parameters()}
    slope = grad(error_of(net, x.double(), Flip("x")))(theta)["1.weight"]
    torch.testing.assert_close(-slope, 1.6 * torch.tensor([[1.0, -1.0], [2.0, -2.0]], dtype=torch.float64))
    found = flow.trace("pair", "flow", x, Flip("x"), 1, 0, 100, 0.25)
    first = found["sigma"]["1.weight"]
    assert first[0] == 1 and first[-1] > 1.05 and found["LI"][-1] < 1e-9 and found["rises"] == 0
    for lengths in found["length"].values():
        assert all(b <= a + 1e-12 for a, b in pairwise(lengths))


@pytest.mark.parametrize("name", ["linear", "deep_linear"])
def test_without_biases_the_error_is_homogeneous_in_every_layer(name):
    net, theta = begun(name)
    LI = error_of(net, X, CyclicRotation(4))
    slope = grad(LI)(theta)
    for key, W in theta.items():  # so that d |W|^2 / dt = -2 <W, slope> = -4 LI
        torch.testing.assert_close((W * slope[key]).sum(), 2 * LI(theta))


def test_adam_takes_its_own_steps():
    net, theta = begun()
    LI = error_of(net, X, CyclicRotation(4))
    first, second = list(follow("adam", LI, theta, 1, 1e-3))
    slope = grad(LI)(theta)["1.weight"]
    moved = second.theta["1.weight"] - first.theta["1.weight"]
    far = slope.abs() > 1e-4
    torch.testing.assert_close(moved[far], -1e-3 * slope[far].sign(), rtol=1e-3, atol=0)


def test_what_is_noted_are_singular_values_and_the_jacobian():
    found = flow.trace("linear", "flow", X, CyclicRotation(4), 4, 0, 6, 0.25)
    W = network("linear", 36, 4, 0).state_dict()["1.weight"]
    assert found["sigma"]["1.weight"][0] == pytest.approx(sigma(W)[0].item())
    assert found["length"]["1.weight"][0] == pytest.approx(W.norm().item())
    assert found["jacobian"] == pytest.approx(found["sigma"]["1.weight"])  # J = W at every input
    assert found["from_closed_form"] < 1e-5 and len(found["t"]) == len(found["LI"]) == 7
    assert "from_closed_form" not in flow.trace("linear", "adam", X, CyclicRotation(4), 4, 0, 2, 1e-3)


def test_names_that_are_not_known():
    refused("Did you mean 'deep_linear'", network, "deep_liner", 4, 2, 0)
    net, theta = begun()
    refused("Did you mean 'flow'", list, follow("flwo", error_of(net, X, CyclicRotation(4)), theta, 1, 0.1))
