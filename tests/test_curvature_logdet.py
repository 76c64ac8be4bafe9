"""log|scale * GGN + delta| and its gradients against the dense matrix, for every structure and prior."""

import math

import pytest
import torch

from augury.core.rng import generator
from curvature_cases import case, fitted, undensed
from reference.blocks import posterior_precision

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
    dense = gradients(
        lambda d, s: torch.linalg.slogdet(posterior_precision(structure, totals, d, s)).logabsdet
    )
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
