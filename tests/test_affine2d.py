"""Affine transformations: their matrices in closed form, their action on images and on coordinates."""

import math

import pytest
import torch

from augury.core.rng import generator
from augury.transforms import affine_matrices as matrices
from augury.transforms.affine2d import MATRICES, Affine2d, AffineCoordinates, generator_names
from augury.transforms.affine_matrices import GENERATORS, G, affine_matrices
from reference.warp import matrix_exp_affine
from refusal import refused

SUBSETS = [GENERATORS, ("rotation",), ("translate_x", "shear"), ("scale_x", "scale_y"), ("shear", "rotation")]


@pytest.mark.parametrize("names", SUBSETS)
@pytest.mark.parametrize("scale", [0.0, 1e-9, 1e-4, 0.3, 1.0, 3.0])
def test_matrices_and_their_gradients_equal_matrix_exp(names, scale):
    generators = G[[GENERATORS.index(n) for n in names]]
    eps = torch.rand(20, len(names), generator=generator(0), dtype=torch.float64) * 2 - 1
    eta = scale * (0.5 + torch.rand(len(names), generator=generator(1), dtype=torch.float64))
    weight = torch.randn(20, 2, 3, generator=generator(2), dtype=torch.float64)
    eta.requires_grad_()
    ours, theirs = affine_matrices(eta, eps, generators), matrix_exp_affine(eta, eps, generators)
    assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    slopes = [torch.autograd.grad((T * weight).sum(), eta)[0] for T in (ours, theirs)]
    assert torch.allclose(*slopes, rtol=1e-10, atol=1e-11)


def test_matrices_are_smooth_where_rotation_and_shear_cancel():
    # q = shear^2 - rotation^2 = 0: the square root inside cosh has no gradient there, its series has.
    eta = torch.tensor([0.7, 0.7, 0.2], dtype=torch.float64, requires_grad=True)
    names = ["rotation", "shear", "translate_x"]
    generators = torch.stack([MATRICES[n] for n in names])
    eps = torch.tensor([[0.5, 0.5, 1.0], [0.5, -0.5, 1.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda eta: affine_matrices(eta, eps, generators), (eta,))


def test_rotation_and_translation_of_the_paper():
    eta, one = torch.tensor([0.6], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    c, s = math.cos(0.6), math.sin(0.6)
    rotation = affine_matrices(eta, one, G[2:3])
    assert torch.allclose(rotation, torch.tensor([[c, -s, 0], [s, c, 0]], dtype=torch.float64), atol=1e-15)
    translation = affine_matrices(eta, one, G[:1])
    assert torch.equal(translation, torch.tensor([[1, 0, 0.6], [0, 1, 0]], dtype=torch.float64))


def test_inverse_determinant_and_rigid_rotations_of_wide_images():
    T = torch.eye(2, 3, dtype=torch.float64) + 0.4 * torch.randn(9, 2, 3, generator=generator(3), dtype=torch.float64)
    whole = torch.cat([T, torch.tensor([[[0, 0, 1.0]]], dtype=torch.float64).expand(9, 1, 3)], dim=1)
    assert torch.allclose(matrices.inverse_affine(T), torch.linalg.inv(whole)[:, :2], atol=1e-10)
    assert torch.allclose(matrices.determinant(T), torch.linalg.det(whole), atol=1e-12)
    # In pixels, D^-1 T D must be the plain rotation.
    H, W = 20, 50
    c, s = math.cos(0.7), math.sin(0.7)
    T = matrices.image_coordinates(torch.tensor([[c, -s, 0.0], [s, c, 0.0]], dtype=torch.float64), H, W)
    to_pixels = torch.diag(torch.tensor([W / 2, H / 2], dtype=torch.float64))
    in_pixels = to_pixels @ T[:, :2] @ torch.linalg.inv(to_pixels)
    assert torch.allclose(in_pixels, torch.tensor([[c, -s], [s, c]], dtype=torch.float64))


def test_half_a_turn_is_rot90_twice_and_translations_compose():
    x = torch.rand(1, 2, 6, 10, generator=generator(0), dtype=torch.float64)
    transform = Affine2d((6, 10), "rotation").double()
    transform.set_widths({"rotation": 180})
    view = transform.act(x, torch.ones(1, 1, 1, dtype=torch.float64))[:, 0]
    assert torch.allclose(view, torch.rot90(x, 2, (-2, -1)), atol=1e-12)
    transform = Affine2d((8, 8), "translation").double()
    transform.set_widths({"translate_x": 2, "translate_y": 2})
    x = torch.rand(1, 1, 8, 8, generator=generator(0), dtype=torch.float64)
    act = lambda x, *eps: transform.act(x, torch.tensor([[eps]], dtype=torch.float64))[:, 0]  # noqa: E731
    assert torch.allclose(act(act(x, 1.0, 0.0), 0.0, 0.5), act(x, 1.0, 0.5), atol=1e-12)
    back = act(act(x, 1.0, -0.5), -1.0, 0.5)
    assert torch.allclose(back[..., 2:-2, 2:-2], x[..., 2:-2, 2:-2], atol=1e-12)


@pytest.mark.parametrize("quarters", [-1, 1])
def test_a_quarter_turn_of_the_square_inside_a_wide_image(quarters):
    square = torch.rand(1, 1, 6, 6, generator=generator(0), dtype=torch.float64)
    pad = torch.nn.functional.pad
    transform = Affine2d((6, 12), "rotation").double()
    transform.set_widths({"rotation": 90})
    view = transform.act(pad(square, (3, 3)), torch.full((1, 1, 1), float(quarters), dtype=torch.float64))[:, 0]
    assert torch.allclose(view, pad(torch.rot90(square, quarters, (-2, -1)), (3, 3)), atol=1e-12)


@pytest.mark.parametrize(("name", "dim"), [("translate_x", -1), ("translate_y", -2)])
def test_a_translation_width_is_in_pixels(name, dim):
    x = torch.rand(1, 1, 10, 14, generator=generator(0), dtype=torch.float64)
    transform = Affine2d((10, 14), name).double()
    transform.set_widths({name: 3})
    view = transform.act(x, torch.ones(1, 1, 1, dtype=torch.float64))[:, 0]
    n = x.shape[dim]
    assert torch.allclose(view.narrow(dim, 0, n - 3), x.narrow(dim, 3, n - 3), atol=1e-12)
    assert view.narrow(dim, n - 3, 3).abs().max() < 1e-12


def test_widths_in_their_units():
    transform = Affine2d((28, 28))
    transform.set_widths({"rotation": 90, "translate_x": 8, "scale_x": 2})
    assert transform.eta.tolist() == pytest.approx([8 / 14, 0, math.pi / 2, math.log(2), 0, 0])
    others = {"translate_y": 0, "scale_y": 1, "shear": 0}
    assert transform.describe() == pytest.approx({"translate_x": 8, "rotation": 90, "scale_x": 2, **others})


def test_joint_scale_is_one_number_for_two_axes():
    transform = Affine2d((9, 9), "scale_joint").double()
    transform.set_widths({"scale_joint": 2})
    T = transform.matrices(transform.noise(3, 4, generator(0)).double())
    assert torch.allclose(T[..., 0, 0], T[..., 1, 1])
    assert T[..., 0, 0].min() >= 0.5
    assert T[..., 0, 0].max() <= 2


def test_coordinates_turn_against_the_clock():
    transform = AffineCoordinates("rotation").double()
    transform.set_widths({"rotation": 90})
    x = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    view = transform.act(x, torch.ones(1, 1, 1, dtype=torch.float64))
    assert torch.allclose(view, torch.tensor([[[0.0, 1.0]]], dtype=torch.float64), atol=1e-15)


def test_names_of_generators_and_sizes_of_images_are_checked():
    assert generator_names("affine") == GENERATORS
    assert generator_names(["shear", "rotation", "rotation"]) == ("rotation", "shear")
    assert generator_names("scale") == ("scale_x", "scale_y")
    for names in (GENERATORS, ("scale_joint",), generator_names("similarity")):
        assert generator_names(names) == names, "the names of a transformation must build it again"
    refused("Did you mean 'rotation'", generator_names, "rotatoin")
    refused("at least one", generator_names, [])
    refused("28 x 28 pixels; got 27 x 28", Affine2d((28, 28)), torch.zeros(1, 1, 27, 28), 2, generator(0))
