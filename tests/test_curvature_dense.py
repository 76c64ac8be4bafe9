"""Full and diagonal GGN against torch.func Jacobians of the orbit average, for every kind of layer."""

import pytest
import torch

from curvature_cases import NETS, case, fitted
from reference.curvature import averaged, empirical, ggn, jacobians, lambdas

CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def exact(net, views):
    J = jacobians(net, views)
    return ggn(J, lambdas(averaged(net, views))), list(J)


@pytest.mark.parametrize("name", NETS)
def test_full_is_the_ggn(name):
    net, views = case(name)
    H, names = exact(net, views)
    structure, totals = fitted("full", net, views)
    assert [block.name for block in structure.blocks] == names
    torch.testing.assert_close(totals["H"], H, **CLOSE)


@pytest.mark.parametrize("name", NETS)
def test_diag_is_the_diagonal_of_the_ggn(name):
    net, views = case(name)
    H, names = exact(net, views)
    structure, totals = fitted("diag", net, views)
    assert [block.name for block in structure.blocks] == names
    torch.testing.assert_close(torch.cat([totals[name] for name in names]), H.diagonal(), **CLOSE)


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
