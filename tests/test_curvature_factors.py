"""Eigenbases of factors, also where LAPACK gives up in float32."""

import pytest
import torch

from augury.core.errors import RunError
from augury.curvature.factors import Factor

MATRIX = torch.tensor([[2.0, 1.0], [1.0, 2.0]])[None]


def reluctant(fails):
    real = torch.linalg.eigh

    def eigh(matrix):
        return fails(matrix) if matrix.dtype == torch.float32 else real(matrix)

    return eigh


def not_converged(matrix):
    raise torch.linalg.LinAlgError("failed to converge")


def silent_nan(matrix):
    return torch.full(matrix.shape[:-1], torch.nan), torch.full(matrix.shape, torch.nan)


@pytest.mark.parametrize("fails", [not_converged, silent_nan])
def test_where_float32_gives_up_float64_does_it(monkeypatch, fails):
    monkeypatch.setattr(torch.linalg, "eigh", reluctant(fails))
    factor = Factor.of(MATRIX)
    assert torch.allclose(factor.values, torch.tensor([[1.0, 3.0]], dtype=torch.float64))
    assert torch.allclose(factor.with_values(factor.values), MATRIX, atol=1e-6)


def test_a_curvature_that_is_not_finite_is_said_so():
    with pytest.raises(RunError, match="not finite"):
        Factor.of(MATRIX * torch.inf)
