"""The warp against its slow twins, closed forms and numerical derivatives."""

import math

import pytest
import torch
from torch import Tensor

from augury.core.rng import generator
from augury.transforms.warp import warp
from reference.warp import affine_grid_warp, pixel_by_pixel_warp


def images(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=generator(0), dtype=torch.float64)


def maps(B: int, S: int, spread: float = 0.4) -> Tensor:
    noise = torch.randn(B, S, 2, 3, generator=generator(1), dtype=torch.float64)
    return torch.eye(2, 3, dtype=torch.float64) + spread * noise


def rotation(degrees: float) -> Tensor:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return torch.tensor([[c, -s, 0.0], [s, c, 0.0]], dtype=torch.float64)


@pytest.mark.parametrize("shape", [(2, 1, 7, 7), (3, 3, 5, 8), (1, 4, 9, 4)])
def test_it_equals_the_twin_that_copies_images(shape):
    x, T = images(*shape).requires_grad_(), maps(shape[0], 6).requires_grad_()
    weight = torch.randn(shape[0], 6, *shape[1:], generator=generator(2), dtype=torch.float64)
    fast, slow = warp(x, T), affine_grid_warp(x, T)
    assert torch.allclose(fast, slow, atol=1e-13)
    for ours, theirs in zip(
        torch.autograd.grad(fast, [x, T], weight), torch.autograd.grad(slow, [x, T], weight), strict=True
    ):
        assert torch.allclose(ours, theirs, atol=1e-12)


def test_it_equals_the_twin_that_visits_pixels():
    x, T = images(2, 1, 5, 6), maps(2, 3)
    views = warp(x, T)
    for b in range(2):
        for s in range(3):
            assert torch.allclose(views[b, s, 0], pixel_by_pixel_warp(x[b, 0], T[b, s]), atol=1e-13)


def test_float32_agrees_no_gradient_is_made_unasked_and_empty_batches_have_no_views():
    x, T = images(2, 3, 8, 8), maps(2, 5)
    assert torch.allclose(warp(x.float(), T.float()).double(), warp(x, T), atol=1e-5)
    assert warp(images(0, 1, 4, 4), maps(0, 2)).shape == (0, 2, 1, 4, 4)
    assert not warp(images(2, 1, 4, 4), maps(2, 2)).requires_grad


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_a_rotation_by_90_degrees_is_rot90(quarters):
    x = images(2, 3, 8, 8)
    views = warp(x, rotation(90 * quarters).expand(2, 1, 2, 3))[:, 0]
    assert torch.allclose(views, torch.rot90(x, quarters, (-2, -1)), atol=1e-12)
    assert quarters == 0 or not torch.allclose(views, torch.rot90(x, quarters + 1, (-2, -1)), atol=0.1)


def test_translations_are_pixel_shifts_with_zeros_coming_in():
    x = images(2, 1, 6, 8)
    T = torch.tensor([[1, 0, 2 * 3 / 8], [0, 1, -2 * 2 / 6]], dtype=torch.float64)  # 3 columns on, 2 rows back
    views = warp(x, T.expand(2, 1, 2, 3))[:, 0]
    expected = torch.zeros_like(x)
    expected[..., 2:, :-3] = x[..., :-2, 3:]
    assert torch.allclose(views, expected, atol=1e-12)


@pytest.mark.parametrize("needs", [(True, True), (True, False), (False, True)])
def test_first_and_second_derivatives(needs):
    x, T = images(2, 2, 4, 5).requires_grad_(needs[0]), maps(2, 2, 0.2).requires_grad_(needs[1])
    assert torch.autograd.gradcheck(warp, (x, T))
    assert torch.autograd.gradgradcheck(warp, (x, T))


def test_second_derivatives_of_a_plain_sum_are_not_lost():
    # The gradient that comes in is a constant; the graph must still reach T.
    x, T = images(2, 2, 5, 5), maps(2, 3, 0.2).requires_grad_()
    weight = torch.randn(2, 3, 2, 3, generator=generator(4), dtype=torch.float64)
    second = []
    for f in (warp, affine_grid_warp):
        (first,) = torch.autograd.grad(f(x, T).sum(), T, create_graph=True)
        second.append(torch.autograd.grad(first, T, weight)[0])
    assert torch.allclose(*second, atol=1e-10)
    assert second[0].abs().max() > 1e-3


@pytest.mark.parametrize("part_bytes", [1, 3000, 2**24])
def test_the_cut_into_parts_changes_nothing(part_bytes, monkeypatch):
    monkeypatch.setattr("augury.transforms.warp._PART_BYTES", part_bytes)
    x, T = images(7, 2, 5, 6).requires_grad_(), maps(7, 3).requires_grad_()
    fast, slow = warp(x, T), affine_grid_warp(x, T)
    assert torch.allclose(fast, slow, atol=1e-13)
    ours, theirs = (torch.autograd.grad(v.square().sum(), [x, T]) for v in (fast, slow))
    assert all(torch.allclose(a, b, atol=1e-11) for a, b in zip(ours, theirs, strict=True))
