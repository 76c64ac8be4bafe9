"""The parts of the curvature: patches, sums of outer products and their eigenbases, and the size of a pass."""

import pytest
import torch
from torch import nn

from augury.core.errors import RunError
from augury.core.rng import generator
from augury.curvature import tape as tape_module
from augury.curvature.factors import Factor, OuterSum, gram
from augury.curvature.layers import mean_patches, patches
from augury.curvature.structure import inner
from augury.curvature.tape import activations, record, rows_per_pass
from augury.models.networks import build
from curvature_cases import case, dense, filled, fitted, statistics, undensed
from reference.curvature import averaged, lambdas, roots
from refusal import refused

DOUBLE = torch.float64

CONVS = [
    ((2, 7), lambda: nn.Conv1d(2, 3, 3)),
    ((4, 9), lambda: nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2)),
    ((2, 6, 5), lambda: nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 2))),
    ((4, 7, 6), lambda: nn.Conv2d(4, 4, (2, 3), dilation=(2, 1), groups=4, bias=False)),
    ((2, 5, 6), lambda: nn.Conv2d(2, 3, (2, 4), padding="same")),
    ((2, 5, 6), lambda: nn.Conv2d(2, 3, 3, padding="valid")),
    ((2, 5, 6), lambda: nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode="circular")),
    ((2, 5, 6), lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect")),
    ((2, 5, 6), lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="replicate", stride=3)),
    ((2, 4, 5, 6), lambda: nn.Conv3d(2, 4, (2, 3, 1), stride=(1, 2, 3), padding=(0, 1, 1), groups=2)),
]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(("shape", "make"), CONVS)
def test_patches_times_weight_is_the_convolution_and_their_mean_is_the_mean_patch(shape, make):
    conv = filled(make())
    x = torch.randn(3, *shape, generator=generator(1), dtype=DOUBLE)
    rows = patches(conv, x)
    weight = conv.weight.reshape(conv.groups, -1, rows.shape[3])
    out = torch.einsum("bpgd,god->bgop", rows, weight).flatten(1, 2)
    if conv.bias is not None:
        out = out + conv.bias[:, None]
    torch.testing.assert_close(out, conv(x).flatten(2))
    torch.testing.assert_close(mean_patches(conv, x), rows.mean(1))


def rows(m, d=7, groups=2, seed=0):
    return torch.randn(groups, m, d, generator=generator(seed), dtype=DOUBLE)


@pytest.mark.parametrize("sizes", [(3,), (2, 3), (4, 4), (2, 9, 1), (9,)])
def test_a_sum_is_the_sum_of_outer_products_in_either_form(sizes):
    parts = [rows(m, seed=k) for k, m in enumerate(sizes)]
    total = OuterSum.of(parts[0])
    for part in parts[1:]:
        total = total + OuterSum.of(part)
    expected = sum(p.mT @ p for p in parts)
    torch.testing.assert_close(total.matrix(), expected)
    torch.testing.assert_close((total * 2.5).matrix(), 2.5 * expected)
    assert (total * 2.5).n == 2.5 * sum(sizes)
    assert (total.summed is None) == (sum(sizes) < 7 or len(sizes) == 1)


@pytest.mark.parametrize("m", [1, 4, 7, 12])
def test_eigenvalues_and_functions_of_the_matrix_are_the_dense_ones(m):
    r = rows(m)
    outer = OuterSum.of(r)
    found, expected, alone = outer.factor(), Factor.of(r.mT @ r), outer.factor(vectors=False)
    close = {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(found.values.sort().values, expected.values.sort().values, **close)
    resolvent = [f.with_values(1 / (f.values + 0.3)) for f in (found, expected)]
    torch.testing.assert_close(*resolvent, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(alone.values, found.values, **close)
    refused("eigenvalues alone", alone.with_values, alone.values, error=RunError)


def test_dependent_rows_leave_no_trace_of_their_null_space():
    r = rows(2).repeat(1, 2, 1)
    factor = OuterSum.of(r).factor()
    assert (factor.values > 0).sum(1).tolist() == [2, 2]
    expected = torch.linalg.inv(r.mT @ r + 0.1 * torch.eye(7, dtype=DOUBLE))
    torch.testing.assert_close(factor.with_values(1 / (factor.values + 0.1)), expected)


@pytest.mark.parametrize("name", ["mlp", "conv1d", "norms"])
def test_rows_give_the_results_of_the_matrices(name):
    net, views = case(name)
    structure, totals = fitted("kron", net, views)
    collected = statistics(structure, net, views, roots(lambdas(averaged(net, views))))
    delta, scale = torch.tensor([0.7], dtype=DOUBLE), torch.tensor(1.3, dtype=DOUBLE)
    spectra = [structure.decompose(t) for t in (undensed(totals), collected)]
    torch.testing.assert_close(*[structure.logdet(s, delta, scale) for s in spectra])
    expected, found = (structure.preconditioner(s, delta, scale) for s in spectra)
    for key, gradient in expected.items():
        torch.testing.assert_close(found[key], gradient, rtol=1e-7, atol=1e-9)
    inputs = structure.inputs(record(net, views.flatten(0, 1), views.shape[1], structure.layers))
    products = [(T * expected[key]).sum() for key, T in dense(inputs).items() if key in expected]
    torch.testing.assert_close(inner(inputs, expected), torch.stack(products).sum())


@pytest.mark.parametrize("d", [255, 256, 301])
def test_the_gram_matrix_in_strips_is_the_product(d):
    r = rows(5, d=d)
    torch.testing.assert_close(gram(r), r.mT @ r)


def not_converged(matrix):
    raise torch.linalg.LinAlgError("failed to converge")


def silent_nan(matrix):
    return torch.full(matrix.shape[:-1], torch.nan), torch.full(matrix.shape, torch.nan)


@pytest.mark.parametrize("fails", [not_converged, silent_nan])
def test_where_float32_fails_float64_is_used(monkeypatch, fails):
    matrix, eigh = torch.tensor([[2.0, 1.0], [1.0, 2.0]])[None], torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", lambda M: fails(M) if M.dtype == torch.float32 else eigh(M))
    factor = Factor.of(matrix)
    assert torch.allclose(factor.values, torch.tensor([[1.0, 3.0]], dtype=DOUBLE))
    assert torch.allclose(factor.with_values(factor.values), matrix, atol=1e-6)


@pytest.mark.parametrize("entry", [torch.inf, torch.nan])
def test_a_curvature_that_is_not_finite_is_reported(entry):
    refused("not finite", Factor.of, torch.full((1, 2, 2), entry), error=RunError)


def test_counting_activations_is_by_hand_and_leaves_the_network_as_it_was(monkeypatch):
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 4 * 4, 5))
    assert activations(net, torch.rand(7, 1, 6, 6)) == 48 + 48 + 48 + 5
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout())
    net[2].eval()
    before = net[1].running_mean.clone()
    assert activations(net, torch.rand(1, 2)) == 9
    assert [m.training for m in net] == [True, True, False]
    assert torch.equal(net[1].running_mean, before)
    assert not net[0]._forward_hooks
    monkeypatch.setattr(tape_module, "ACTIVATIONS", 1)
    assert rows_per_pass(nn.Linear(2, 3), torch.rand(4, 2)) == 1


@pytest.mark.parametrize(
    ("conv", "shape"),
    [
        (nn.Conv2d(1, 3, 3, padding=(2, 0)), (1, 6, 5)),
        (nn.Conv2d(1, 2, 2, padding=3), (1, 4, 4)),
        (nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2, bias=False), (4, 7, 6)),
        (nn.Conv2d(2, 3, 3, padding="same", padding_mode="circular"), (2, 5, 5)),
        (nn.Conv2d(2, 3, 3, padding="same"), (2, 5, 5)),
        (nn.Conv1d(1, 4, 5, dilation=2), (1, 12)),
        (nn.Conv3d(1, 2, 2, stride=(1, 2, 1)), (1, 3, 4, 3)),
    ],
)
def test_convolutions_on_the_tape_have_torchs_first_and_second_derivatives(conv, shape):
    net = nn.Sequential(conv.double(), nn.Tanh(), nn.Flatten(), nn.LazyLinear(3)).double()
    rows = torch.rand(4, *shape, dtype=DOUBLE, generator=generator(0)).requires_grad_()
    net(rows)
    column = 100 * torch.rand(2, 3, dtype=DOUBLE, generator=generator(1))
    found = []
    for plainly in (False, True):
        x = rows.detach().requires_grad_() if plainly else rows
        if plainly:  # what torch does by itself
            z = net[0](x)
            f = net[1:](z).unflatten(0, (2, 2)).mean(1)
        else:
            tape = record(net, x, 2, {"0": net[0], "3": net[3]})
            z, f = tape.calls["0"][0].z, tape.f
        (g,) = torch.autograd.grad(f, z, column * f, create_graph=True)
        (back,) = torch.autograd.grad(z, x, g, create_graph=True)
        value = g.pow(3).sum() + back.pow(3).sum() + f.square().sum()
        found.append((value, back, *torch.autograd.grad(value, x)))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(("name", "low", "high"), [("mlp", 1000, 2000), ("cnn", 400, 2000), ("resnet_8_8", 100, 400)])
def test_larger_networks_get_smaller_passes(name, low, high):
    assert low <= rows_per_pass(build(name, (1, 28, 28), 10, generator(0)), torch.rand(1, 1, 28, 28)) <= high
