"""Every structure against dense matrices: the GGN by torch.func Jacobians, log|scale * GGN + delta|, its gradients."""

import math

import pytest
import torch

from augury.core.rng import generator
from curvature_cases import NETS, case, fitted, undensed
from reference.blocks import posterior_precision
from reference.curvature import averaged, empirical, ggn, jacobians, lambdas

CLOSE = {"rtol": 1e-9, "atol": 1e-12}


@pytest.mark.parametrize("name", NETS)
def test_full_is_the_ggn_and_diag_its_diagonal(name):
    net, views = case(name)
    J = jacobians(net, views)
    H, names = ggn(J, lambdas(averaged(net, views))), list(J)
    (full, whole), (diag, diagonal) = (fitted(kind, net, views) for kind in ("full", "diag"))
    assert [block.name for block in full.blocks] == [block.name for block in diag.blocks] == names
    torch.testing.assert_close(whole["H"], H, **CLOSE)
    torch.testing.assert_close(torch.cat([diagonal[name] for name in names]), H.diagonal(), **CLOSE)


@pytest.mark.parametrize("name", ["norms", "batchnorm3d", "scalars", "twice", "partly frozen"])
@pytest.mark.parametrize("positions", ["reduce", "expand"])
def test_kron_keeps_the_exact_block_of_scalars_and_norms(name, positions):
    net, views = case(name)
    J, Lambda = jacobians(net, views), lambdas(averaged(net, views))
    structure, totals = fitted("kron", net, views, positions=positions)
    dense = [b.name for b in structure.blocks if f"{b.name}/G" in totals and b.name != b.layer]
    assert dense  # the case has what this test is about
    for block in dense:
        torch.testing.assert_close(totals[f"{block}/G"][0], ggn({block: J[block]}, Lambda), **CLOSE)


@pytest.mark.parametrize("regression", [False, True])
def test_the_columns_decide_what_stands_in_the_place_of_lambda(regression):
    net, views = case("conv2d", N=4)
    f, J = averaged(net, views), jacobians(net, views)
    y = torch.tensor([2, 0, 1, 1])
    y = f.detach().roll(1, 0) if regression else y
    for Lambda in (lambdas(f, y), empirical(f, y)):
        _, totals = fitted("full", net, views, Lambda)
        torch.testing.assert_close(totals["H"], ggn(J, Lambda), **CLOSE)


def test_the_average_is_over_functions_not_over_curvatures():
    net, views = case("mlp")
    _, totals = fitted("full", net, views)
    apart = views.flatten(0, 1)[:, None]  # every copy a datum of its own, at the copies' share of the weight
    _, improper = fitted("full", net, apart)
    assert not torch.allclose(totals["H"], improper["H"] / views.shape[1], rtol=0.05)


SCALE = torch.tensor(1.7, dtype=torch.float64)
STRUCTURES = ["kron", "diag", "full"]
PRIORS = ["scalar", "layer", "tensor"]


def made(name, kind, prior, positions="reduce"):
    net, views = case(name)
    structure, totals = fitted(kind, net, views, prior=prior, positions=positions)
    delta = torch.rand(structure.n_delta, generator=generator(9), dtype=torch.float64) + 0.1
    return structure, totals, delta


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", ["mlp", "conv1d", "conv3d", "norms", "scalars", "partly frozen"])
def test_logdet_is_the_dense_one(name, prior, kind):
    structure, totals, delta = made(name, kind, prior)
    found = structure.logdet(structure.decompose(undensed(totals)), delta, SCALE)
    dense = torch.linalg.slogdet(posterior_precision(structure, totals, delta, SCALE))
    assert dense.sign == 1
    torch.testing.assert_close(found, dense.logabsdet, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(
    ("name", "positions"), [("conv1d", "expand"), ("norms", "reduce"), ("partly frozen", "reduce")]
)
def test_preconditioner_is_the_gradient_of_the_dense_logdet(name, positions, prior, kind):
    structure, totals, delta = made(name, kind, prior, positions)
    found = structure.preconditioner(structure.decompose(undensed(totals)), delta, SCALE)
    leaves = {key: T.clone().requires_grad_(not key.endswith("/n")) for key, T in totals.items()}
    torch.linalg.slogdet(posterior_precision(structure, leaves, delta, SCALE)).logabsdet.backward()
    expected = {key: T.grad for key, T in leaves.items() if T.requires_grad}
    assert set(found) == set(expected)
    for key, gradient in expected.items():
        torch.testing.assert_close(found[key], gradient, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("prior", PRIORS)
def test_gradients_in_delta_and_scale_are_those_of_the_dense_logdet(prior, kind):
    structure, totals, delta = made("conv2d", kind, prior)

    def gradients(logdet):
        leaves = [delta.clone().requires_grad_(), SCALE.clone().requires_grad_()]
        return torch.autograd.grad(logdet(*leaves), leaves)

    spectrum = structure.decompose(undensed(totals))
    found = gradients(lambda d, s: structure.logdet(spectrum, d, s))
    dense = gradients(lambda d, s: torch.linalg.slogdet(posterior_precision(structure, totals, d, s)).logabsdet)
    for a, b in zip(found, dense, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", ["conv2d", "norms", "partly frozen"])
def test_prior_counts_every_learned_number_once(name, prior, kind):
    net, views = case(name)
    structure, _ = fitted(kind, net, views, prior=prior)
    delta = torch.rand(structure.n_delta, generator=generator(9), dtype=torch.float64) + 0.1
    expected = 0.0
    for parameter, p in net.named_parameters():
        if p.requires_grad:
            owner = {"scalar": "all", "layer": parameter.rpartition(".")[0], "tensor": parameter}[prior]
            sd = delta[structure.delta_names.index(owner)].rsqrt()
            log_p = torch.distributions.Normal(0.0, sd).log_prob(p.detach())
            expected = expected + (log_p + math.log(2 * math.pi) / 2).sum()
    torch.testing.assert_close(structure.log_prior(delta), expected, rtol=1e-10, atol=1e-10)
