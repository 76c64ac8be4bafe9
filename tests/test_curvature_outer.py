"""Sums of outer products kept as rows: matrix, eigenvalues, log-determinant and preconditioner of the dense one."""

import pytest
import torch

from augury.core.errors import RunError
from augury.core.rng import generator
from augury.curvature.factors import Factor, Outer, gram
from augury.curvature.structure import added
from augury.curvature.tape import record
from curvature_cases import case, fitted
from reference.curvature import averaged, lambdas, roots

DOUBLE = torch.float64


def rows(m, d=7, groups=2, seed=0):
    return torch.randn(groups, m, d, generator=generator(seed), dtype=DOUBLE)


@pytest.mark.parametrize("sizes", [(3,), (2, 3), (4, 4), (2, 9, 1), (9,)])
def test_a_sum_is_the_sum_of_outer_products_however_it_is_kept(sizes):
    parts = [rows(m, seed=k) for k, m in enumerate(sizes)]
    total = Outer((parts[0],))
    for part in parts[1:]:
        total = total + Outer((part,))
    expected = sum(p.mT @ p for p in parts)
    torch.testing.assert_close(total.matrix(), expected)
    torch.testing.assert_close((total * 2.5).matrix(), 2.5 * expected)
    assert (total.summed is None) == (sum(sizes) < 7 or len(sizes) == 1)


@pytest.mark.parametrize("m", [1, 4, 7, 12])
def test_eigenvalues_and_functions_of_the_matrix_are_the_dense_ones(m):
    r = rows(m)
    found, dense = Outer((r,)).factor(), Factor.of(r.mT @ r)
    torch.testing.assert_close(found.values.sort().values, dense.values.sort().values, rtol=1e-9, atol=1e-9)
    resolvent = [f.with_values(1 / (f.values + 0.3)) for f in (found, dense)]
    torch.testing.assert_close(*resolvent, rtol=1e-8, atol=1e-8)


def test_rows_that_depend_on_each_other_leave_no_trace_of_their_null_space():
    r = rows(2).repeat(1, 2, 1)
    factor = Outer((r,)).factor()
    assert (factor.values > 0).sum(1).tolist() == [2, 2]
    expected = torch.linalg.inv(r.mT @ r + 0.1 * torch.eye(7, dtype=DOUBLE))
    torch.testing.assert_close(factor.with_values(1 / (factor.values + 0.1)), expected)


@pytest.mark.parametrize("m", [4, 12])
def test_values_alone_are_the_same_values(m):
    outer = Outer((rows(m),))
    alone = outer.factor(vectors=False)
    torch.testing.assert_close(alone.values, outer.factor().values, rtol=1e-9, atol=1e-9)
    with pytest.raises(RunError, match="eigenvalues alone"):
        alone.with_values(alone.values)


@pytest.mark.parametrize("name", ["mlp", "conv1d", "norms"])
def test_collected_statistics_decompose_as_the_summed_ones(name):
    net, views = case(name)
    structure, totals = fitted("kron", net, views)
    tape = record(net, views.flatten(0, 1), views.shape[1], structure.layers)
    grads = [tape.gradients(c, create_graph=False, retain=True) for c in roots(lambdas(averaged(net, views)))]
    with torch.no_grad():
        columns = [structure.collect_outputs(tape, g) for g in grads]
        collected = added([structure.collect_inputs(tape), *columns])
    delta, scale = torch.tensor([0.7], dtype=DOUBLE), torch.tensor(1.3, dtype=DOUBLE)
    spectra = [structure.decompose(t) for t in (totals, collected)]
    torch.testing.assert_close(*[structure.logdet(s, delta, scale) for s in spectra])
    dense, dual = (structure.preconditioner(s, delta, scale) for s in spectra)
    for key, gradient in dense.items():
        torch.testing.assert_close(dual[key], gradient, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("d", [255, 256, 301])
def test_the_gram_matrix_in_strips_is_the_product(d):
    r = rows(5, d=d)
    torch.testing.assert_close(gram(r), r.mT @ r)
