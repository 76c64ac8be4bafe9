"""Transforming first-layer weights equals transforming inputs (paper B, section 3.2)."""

import math

import pytest
import torch
from torch import Tensor

from augury.core.rng import generator
from augury.transforms.affine2d import Affine2d
from augury.transforms.affine_matrices import affine_matrices, image_coordinates
from augury.transforms.warp import warp
from augury.transforms.weights import transform_flat_weights, transform_weights
from reference.warp import adjoint_weights
from refusal import refused


def rotation(degrees: float, factor: float = 1.0) -> Tensor:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return factor * torch.tensor([[c, -s, 0.0], [s, c, 0.0]], dtype=torch.float64)


def blobs(B: int, C: int, n: int = 28) -> Tensor:
    """Return smooth images with a black border, as digits have."""
    axis = torch.linspace(-1, 1, n, dtype=torch.float64)
    centre = 0.3 * torch.randn(B, C, 2, 1, 1, generator=generator(0), dtype=torch.float64)
    return torch.exp(-12 * ((axis[:, None] - centre[:, :, 0]) ** 2 + (axis - centre[:, :, 1]) ** 2))


def noise(F: int, C: int, n: int = 28) -> Tensor:
    return torch.randn(F, C, n, n, generator=generator(1), dtype=torch.float64)


def relative_difference(weight: Tensor, x: Tensor, T: Tensor, moved: Tensor | None = None) -> float:
    on_input = torch.einsum("bchw,fchw->bf", warp(x, T.expand(len(x), 1, 2, 3))[:, 0], weight)
    moved = transform_weights(weight, T[None])[0] if moved is None else moved
    on_weights = torch.einsum("bchw,fchw->bf", x, moved)
    return ((on_input - on_weights).norm() / on_input.norm()).item()


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_exact_for_quarter_turns(degrees):
    x, weight = torch.rand(5, 2, 9, 9, generator=generator(2), dtype=torch.float64), noise(4, 2, 9)
    assert relative_difference(weight, x, rotation(degrees)) < 1e-12


def test_exact_for_whole_pixels():
    x, weight = torch.rand(5, 2, 9, 9, generator=generator(2), dtype=torch.float64), noise(4, 2, 9)
    T = torch.tensor([[1, 0, 2 * 2 / 9], [0, 1, -2 * 3 / 9]], dtype=torch.float64)
    assert relative_difference(weight, x, T) < 1e-12


@pytest.mark.parametrize(("degrees", "bound"), [(5, 0.005), (30, 0.1), (45, 0.15)])
def test_rotations_agree_up_to_interpolation_of_white_noise(degrees, bound):
    assert relative_difference(noise(64, 1), blobs(20, 1), rotation(degrees)) < bound
    forward = warp(noise(64, 1), rotation(degrees).expand(64, 1, 2, 3))[:, 0]
    assert relative_difference(noise(64, 1), blobs(20, 1), rotation(degrees), forward) > 0.1, "needs the inverse"


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_maps_that_scale_areas_need_the_determinant(factor):
    weight, x, T = blobs(6, 1), blobs(20, 1), rotation(20, factor)
    assert relative_difference(weight, x, T) < 0.02
    without = transform_weights(weight, T[None])[0] * factor**2
    assert relative_difference(weight, x, T, without) > 0.3


def test_it_approaches_the_exact_transpose_and_flat_weights_are_the_same():
    weight, T = blobs(3, 2), rotation(20, 1.2)
    x = torch.rand(9, 2, 28, 28, generator=generator(3), dtype=torch.float64)
    exact = adjoint_weights(weight, T)
    assert relative_difference(weight, x, T, exact) < 1e-12
    assert (transform_weights(weight, T[None])[0] - exact).norm() < 0.15 * exact.norm()
    weight = noise(4, 2, 9)
    T = torch.stack([rotation(30), rotation(70, 1.1)])
    flat = transform_flat_weights(weight.flatten(1), T, (2, 9, 9))
    assert flat.shape == (2, 4, 162)
    assert torch.equal(flat.view(2, 4, 2, 9, 9), transform_weights(weight, T))
    refused("must have 98 inputs; got 162", transform_flat_weights, weight.flatten(1), T, (2, 7, 7))


def test_gradients_reach_the_widths_on_images_of_any_aspect():
    transform = Affine2d((6, 8), ["rotation", "scale_x"]).double()
    weight = torch.randn(2, 1, 6, 8, generator=generator(1), dtype=torch.float64)
    eps = transform.noise(1, 3, generator(0)).double()[0]

    def moved(eta: Tensor) -> Tensor:
        T = image_coordinates(affine_matrices(eta, eps, transform.generators), *transform.image_size)
        return transform_weights(weight, T)

    eta = torch.tensor([0.3, 0.2], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(moved, eta)
