"""At S = 1 and without a transformation the factors are curvlinops' KFAC, as dense matrices over all parameters."""

import warnings

import pytest
import torch
from torch import nn

import curvature_cases as cases
from augury.core.rng import generator
from augury.evidence.likelihoods import Categorical, Gaussian
from curvature_cases import filled, fitted
from evidence_cases import data
from reference.blocks import dense_blocks
from reference.curvature import averaged, empirical, lambdas

OURS = {"type-2": lambdas, "empirical": empirical}


@pytest.fixture(scope="module")
def KFAC():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit.script, in one of its dependencies
        from curvlinops import KFACLinearOperator
    return KFACLinearOperator


def mlp():
    layers = nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4, bias=False), nn.Tanh(), nn.Linear(4, 3)
    return filled(nn.Sequential(*layers)), (5,)


def cnn():
    first, second = (nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.Conv2d(4, 3, (2, 3), dilation=(2, 1), bias=False))
    return filled(nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), nn.Flatten(), nn.Linear(12, 3))), (2, 8, 7)


NETS = {"mlp": mlp, "cnn": cnn}


def assembled(net, structure, totals):
    """Our blocks as one matrix over theta in the order of `net.parameters()`."""
    order = {p: k for k, p in enumerate(net.parameters())}
    sizes = [p.numel() for p in net.parameters()]
    starts = torch.tensor([0, *sizes]).cumsum(0)
    H = torch.zeros(sum(sizes), sum(sizes), dtype=torch.float64)
    for block, dense in zip(structure.blocks, dense_blocks(structure, totals), strict=True):
        at = [torch.arange(p.numel()) + starts[order[p]] for p in block.parameters]
        if len(at) == 2:  # our rows run over [out, in + 1]
            out = len(at[1])
            at = [torch.cat([at[0].reshape(out, -1), at[1][:, None]], dim=1).flatten()]
        H[at[0][:, None], at[0]] = dense
    return H


def oracle(KFAC, net, x, y, fisher, approx, joint, **options):
    loss = nn.CrossEntropyLoss(reduction="sum") if y.dtype == torch.int64 else nn.MSELoss(reduction="sum")
    parameters = list(net.parameters())
    options |= {"fisher_type": fisher, "kfac_approx": approx, "separate_weight_and_bias": not joint}
    operator = KFAC(net, loss, parameters, [(x, y)], check_deterministic=False, **options)
    return (operator @ torch.eye(sum(p.numel() for p in parameters), dtype=torch.float64)).detach()


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("fisher", ["type-2", "empirical"])
@pytest.mark.parametrize("approx", ["reduce", "expand"])
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("regression", [False, True])
def test_factors_are_those_of_curvlinops(KFAC, net, fisher, approx, joint, regression):
    net, shape = NETS[net]()
    x, y = data(shape, regression)
    prior = "scalar" if joint else "tensor"
    Lambda = OURS[fisher](averaged(net, x[:, None]), y)
    ours = assembled(net, *fitted("kron", net, x[:, None], Lambda, prior=prior, positions=approx))
    if regression:  # their squared error has no 1/2: noise 1/2 in our terms
        ours = ours * Gaussian(0.5).scale({"type-2": "ggn", "empirical": "ef"}[fisher]).double().detach()
    theirs = oracle(KFAC, net, x, y, fisher, approx, joint)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("output", ["mc", "label"])
def test_sampled_factors_are_theirs_in_expectation(KFAC, net, output):
    net, shape = NETS[net]()
    x, y = data(shape)
    exact = oracle(KFAC, net, x, y, "type-2", "reduce", joint=True)
    M = 2000  # statistics add up over data, so M copies of the data are M draws
    structure, _ = fitted("kron", net, x[:, None])
    many = x.repeat(M, *[1] * len(shape))[:, None]
    columns = Categorical().columns(net(many[:, 0]).detach(), y.repeat(M), output, generator(0))
    totals = {name: T / M for name, T in cases.dense(cases.statistics(structure, net, many, columns)).items()}
    ours = assembled(net, structure, totals).detach()
    assert torch.linalg.norm(ours - exact) < 0.03 * torch.linalg.norm(exact)


def test_their_samples_and_ours_agree(KFAC):
    net, shape = mlp()
    x, y = data(shape)
    exact = oracle(KFAC, net, x, y, "type-2", "expand", joint=True)
    theirs = oracle(KFAC, net, x, y, "mc", "expand", joint=True, mc_samples=400)
    assert torch.linalg.norm(theirs - exact) < 0.1 * torch.linalg.norm(exact)
    assert not torch.allclose(oracle(KFAC, net, x, y, "empirical", "expand", joint=True), exact, rtol=0.1)
