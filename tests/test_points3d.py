"""Rotations of point clouds against torch's matrix exponential."""

import math

import pytest
import torch

from augury.core.rng import generator
from augury.transforms.points3d import Rotation3d, rotation_matrices
from refusal import refused


def cross(v):
    x, y, z = v.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], dim=-1).unflatten(-1, (3, 3))


@pytest.mark.parametrize("scale", [0.0, 1e-8, 1e-3, 0.5, 3.0, 6.0])
def test_rodrigues_equals_matrix_exp_with_gradients(scale):
    v = (scale * torch.randn(20, 3, generator=generator(0), dtype=torch.float64)).requires_grad_()
    R, theirs = rotation_matrices(v), torch.matrix_exp(cross(v))
    assert torch.allclose(R, theirs, atol=1e-12)
    assert torch.allclose(R @ R.mT, torch.eye(3, dtype=torch.float64), atol=1e-12)
    weight = torch.randn(20, 3, 3, generator=generator(1), dtype=torch.float64)
    slopes = [torch.autograd.grad((M * weight).sum(), v)[0] for M in (R, theirs)]
    assert torch.allclose(*slopes, atol=1e-10)


def test_second_derivative_at_zero():
    assert torch.autograd.gradgradcheck(rotation_matrices, torch.zeros(2, 3, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize(("axis", "start", "end"), [("x", 1, 2), ("y", 2, 0), ("z", 0, 1)])
def test_a_quarter_turn_about_each_axis(axis, start, end):
    transform = Rotation3d([f"rotation_{axis}"]).double()
    transform.set_widths({f"rotation_{axis}": 90})
    eye = torch.eye(3, dtype=torch.float64)
    view = transform.act(eye[start][None, None], torch.ones(1, 1, 1, dtype=torch.float64))
    assert torch.allclose(view[0, 0, 0], eye[end], atol=1e-12)


def test_scale_is_isotropic_rotations_keep_distances_and_mistakes_are_named():
    x = torch.randn(2, 9, 3, generator=generator(0), dtype=torch.float64)
    transform = Rotation3d(["rotation_x", "rotation_y", "rotation_z", "scale"]).double()
    transform.set_widths({"rotation_x": 60, "rotation_y": 170, "rotation_z": 20, "scale": 2})
    views = transform(x, 7, generator(1))
    ratio = torch.cdist(views, views)[..., 0, 1:] / torch.cdist(x, x)[:, None, 0, 1:]
    assert torch.allclose(ratio, ratio[..., :1].expand_as(ratio))
    assert ratio.min() >= 0.5
    assert ratio.max() <= 2
    assert transform.specs[0].upper == math.pi
    refused("acts on point clouds", Rotation3d(), torch.zeros(2, 5, 4), 2, generator(0))
    refused("Did you mean 'rotation_z'", Rotation3d, ["rotation_zz"])
