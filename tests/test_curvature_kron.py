"""Kronecker factors: paper A's equations written as loops, the regimes where they are exact, and the expand option."""

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.curvature.factors import Factor
from curvature_cases import Pool, case, filled, fitted
from reference.blocks import dense_blocks
from reference.curvature import averaged, empirical, ggn, jacobians, joint, lambdas, paper_block

CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def draws(*shape, seed=5):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def exact_blocks(net, views, Lambda):
    """The GGN's own diagonal blocks of every layer, weight and bias together."""
    J = jacobians(net, views)
    layers = dict.fromkeys(name.rpartition(".")[0] for name in J)
    return [ggn({layer: joint(J, layer)}, Lambda) for layer in layers]


def plain_cnn():
    first = nn.Conv2d(2, 3, (2, 3), stride=(1, 2), padding=(0, 1))
    second = nn.Conv2d(3, 2, 2, dilation=(2, 1), bias=False)
    return filled(nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), nn.Flatten(), nn.Linear(8, 3)))


def sequence_net():
    head = nn.Flatten(), nn.Linear(18, 3)
    return filled(nn.Sequential(nn.Unflatten(1, (6, 5)), nn.Linear(5, 3), nn.Tanh(), *head))


@pytest.mark.parametrize("positions", ["reduce", "expand"])
@pytest.mark.parametrize("prior", ["scalar", "tensor"])
@pytest.mark.parametrize(
    ("make", "shape"), [(plain_cnn, (2, 5, 6)), (sequence_net, (30,)), (lambda: case("mlp")[0], (4,))]
)
def test_factors_are_those_of_equation_15(make, shape, prior, positions):
    net, views = make(), draws(4, 3, *shape)
    structure, totals = fitted("kron", net, views, prior=prior, positions=positions)
    for block, H in zip(structure.blocks, dense_blocks(structure, totals), strict=True):
        layer = structure.layers[block.layer]
        if block.parameters[0] is layer.bias:
            continue
        expected = paper_block(net, layer, views, positions, with_bias=len(block.parameters) == 2)
        torch.testing.assert_close(H, expected, **CLOSE)


@pytest.mark.parametrize("name", ["mlp", "conv1d", "conv2d", "conv3d", "sequence", "twice", "partly frozen"])
def test_a_bias_with_a_prior_of_its_own_has_its_exact_block(name):
    net, views = case(name)
    J, Lambda = jacobians(net, views), lambdas(averaged(net, views))
    structure, totals = fitted("kron", net, views, prior="tensor")
    biases = [(b, H) for b, H in zip(structure.blocks, dense_blocks(structure, totals), strict=True)]
    biases = [(b.name, H) for b, H in biases if b.name.endswith(".bias")]
    assert biases
    for bias, H in biases:
        H = H.reshape(J[bias].shape[2], -1)
        exact = ggn({bias: J[bias]}, Lambda)
        groups = getattr(structure.layers[bias.rpartition(".")[0]], "groups", 1)
        size = len(exact) // groups  # the outputs of different groups do not see each other's factors
        for k in range(groups):
            part = slice(k * size, (k + 1) * size)
            torch.testing.assert_close(H[part, part], exact[part, part], **CLOSE)


def deep_linear():
    return filled(nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 5, bias=False), nn.Linear(5, 3))), (4,)


def deep_linear_cnn():
    # Circular convolutions and a mean over positions: every position has the same output gradient.
    conv = {"padding": "same", "padding_mode": "circular"}
    net = nn.Sequential(nn.Conv2d(2, 3, 3, **conv), nn.Conv2d(3, 2, 3, **conv), Pool(), nn.Linear(2, 3))
    return filled(net), (2, 4, 5)


@pytest.mark.parametrize("make", [deep_linear, deep_linear_cnn])
@pytest.mark.parametrize("S", [1, 4])
def test_exact_on_deep_linear_networks(make, S):
    net, shape = make()
    views = draws(6, S, *shape)
    f = averaged(net, views)
    Lambda = lambdas(f, f)  # regression: the same for all data
    structure, totals = fitted("kron", net, views, Lambda)
    for H, exact in zip(dense_blocks(structure, totals), exact_blocks(net, views, Lambda), strict=True):
        torch.testing.assert_close(H, exact, **CLOSE)


@pytest.mark.parametrize("N", [1, 2])
def test_exact_on_a_single_datum_and_only_there(N):
    net, views = case("mlp", N=N, S=1)
    Lambda = lambdas(averaged(net, views))
    structure, totals = fitted("kron", net, views)
    pairs = list(zip(dense_blocks(structure, totals), exact_blocks(net, views, Lambda), strict=True))
    same = [torch.allclose(H, exact, **CLOSE) for H, exact in pairs]
    assert same == [N == 1] * 2


@pytest.mark.parametrize(("N", "regression"), [(5, True), (1, False)])
def test_exact_for_linear_models_under_orbit_averaging(N, regression):
    net, views = filled(nn.Sequential(nn.Linear(4, 3))), draws(N, 5, 4)
    f = averaged(net, views)
    Lambda = lambdas(f, f if regression else None)
    structure, totals = fitted("kron", net, views, Lambda)
    (H,) = dense_blocks(structure, totals)
    torch.testing.assert_close(H, exact_blocks(net, views, Lambda)[0], **CLOSE)


def test_orbits_of_a_nonlinear_network_are_approximated():
    net, views = case("mlp", N=1, S=4)
    structure, totals = fitted("kron", net, views)
    H = dense_blocks(structure, totals)[0]
    assert not torch.allclose(H, exact_blocks(net, views, lambdas(averaged(net, views)))[0], rtol=0.01)


def test_a_layer_called_twice_counts_as_shared_positions():
    net, views = case("twice", S=1)
    y = torch.tensor([0, 2, 1])
    Lambda = empirical(averaged(net, views), y)
    for positions in ("reduce", "expand"):
        structure, totals = fitted("kron", net, views, Lambda, positions=positions)
        rows, g = calls_of(net.hidden, net, views[:, 0], y)
        a = torch.cat([rows, torch.ones_like(rows[..., :1])], dim=2)
        if positions == "reduce":
            a, g = a.mean(0, keepdim=True), g.sum(0, keepdim=True)
        A, G = (torch.einsum("cni,cnj->ij", t, t) for t in (a, g))
        at = [b.name for b in structure.blocks].index("hidden")
        expected = torch.kron(G, A) / (a.shape[0] * a.shape[1])
        torch.testing.assert_close(dense_blocks(structure, totals)[at], expected, **CLOSE)


def calls_of(layer, net, x, y):
    """Inputs and gradients of log p in the outputs of every call of a layer: [calls, N, d]."""
    seen = []
    handle = layer.register_forward_hook(lambda _, inputs, z: seen.append((inputs[0], z)))
    log_p = -nn.functional.cross_entropy(net(x), y, reduction="sum")
    handle.remove()
    g = torch.autograd.grad(log_p, [z for _, z in seen])
    return torch.stack([a.detach() for a, _ in seen]), torch.stack(g)


def test_factors_are_made_where_float32_does_not_converge(monkeypatch):
    """After the fall-back to float64 the vectors are those of the rows' type: rate=10 ended in a RuntimeError."""
    rows, decompose = torch.randn(1, 3, 5, generator=generator(0)), torch.linalg.eigh

    def fails(matrix):
        if matrix.dtype == torch.float32:
            raise torch.linalg.LinAlgError("did not converge")
        return decompose(matrix)

    monkeypatch.setattr(torch.linalg, "eigh", fails)
    found = Factor.of_rows(rows)
    assert found.vectors.dtype == torch.float32 and found.values.dtype == torch.float64
    assert torch.allclose(found.with_values(found.values), rows.mT @ rows, atol=1e-5)
