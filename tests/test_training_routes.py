"""Ways through an orbit: they pass through the input, reach beyond what was learned, and undo nothing of it."""

import math

import pytest
import torch

from augury.core.rng import generator
from augury.core.units import DEGREES, FACTOR, PLAIN
from augury.training.exhibit import STEPS, TOGETHER, signed, walks
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from augury.transforms.compose import Correlated
from augury.transforms.finite_groups import CyclicRotation
from augury.transforms.vocabulary import build

MIDDLE = STEPS // 2


def images(n: int = 2, side: int = 9) -> torch.Tensor:
    return torch.rand(n, 1, side, side, generator=generator(0), dtype=torch.float64)


def affine(words="affine", **widths):
    transform = Affine2d((9, 9), words).double()
    transform.set_widths(widths)
    return transform


def test_an_angle_makes_the_full_turn_through_the_input_itself():
    x = images()
    (walk,) = walks(affine("rotation", rotation=40), x)
    assert walk.name == "rotation" and walk.unit == "deg" and walk.learned == pytest.approx(40)
    assert walk.at[0] == -180 and walk.at[MIDDLE] == 0 and walk.at[-1] == 180
    torch.testing.assert_close(walk.views[:, MIDDLE], x)
    torch.testing.assert_close(walk.views[:, 0], walk.views[:, -1])


def test_a_step_is_what_the_transformation_does_at_that_strength():
    x = images()
    (walk,) = walks(affine("rotation", rotation=40), x)
    step = walk.at.index(60)
    expected = affine("rotation", rotation=60).act(x, torch.ones(2, 1, 1, dtype=torch.float64))[:, 0]
    torch.testing.assert_close(walk.views[:, step], expected)
    assert not torch.allclose(walk.views[:, step], walk.views[:, step + 1])


def test_other_widths_go_to_twice_what_was_learned_and_a_little_way_where_nothing_was():
    x = images()
    walk = walks(affine(["scale_x", "translate_x"], scale_x=1.5), x)[0]
    assert walk.name == "scale_x" and walk.at[-1] == pytest.approx(1.5**2, abs=1e-4)
    assert walk.at[0] == pytest.approx(1.5**-2, abs=1e-4) and walk.at[MIDDLE] == 1
    (none,) = walks(affine("translate_x"), x)
    assert none.learned == 0 and none.at[-1] == pytest.approx(0.25 * 9 / 2, abs=1e-4)


def test_the_largest_widths_come_first_and_then_all_together():
    found = walks(affine(rotation=90, scale_x=1.1, shear=0.01), images())
    assert [walk.name for walk in found] == ["rotation", "scale_x", TOGETHER]
    assert [walk.name for walk in walks(affine(rotation=90), images())] == ["rotation", "translate_x"]


def test_together_stays_inside_the_distribution_and_moves_every_width():
    transform = AffineCoordinates(("translate_x", "translate_y")).double()
    transform.set_widths({"translate_x": 0.5, "translate_y": 0.25})
    x = torch.zeros(1, 2, dtype=torch.float64)
    moved = walks(transform, x)[-1].views[0]
    size = moved.abs().amax(0).tolist()
    assert size[0] <= 0.5 + 1e-9 and size[1] <= 0.25 + 1e-9
    assert size[0] > 0.45 and size[1] > 0.2


def test_what_has_one_direction_starts_at_the_input():
    x = images()
    (walk,) = walks(build("blur", "image", (1, 9, 9)).double(), x)
    assert walk.at[0] == 0 and walk.at[1] > 0
    torch.testing.assert_close(walk.views[:, 0], x)


def test_a_finite_group_shows_its_elements():
    x = images()
    group = CyclicRotation(4)
    group.set_widths({"C4": 30})
    (walk,) = walks(group, x)
    assert walk.unit == "element" and walk.at == (0, 1, 2, 3) and walk.learned == pytest.approx(30)
    assert torch.equal(walk.views[:, 1], torch.rot90(x, 1, (-2, -1)))


def test_compositions_and_correlated_widths_are_walked_one_width_at_a_time():
    x = images()
    both = build("flip_x,rotation", "image", (1, 9, 9)).double()
    both.set_widths({"rotation": 90, "flip_x": 50})
    found = {walk.name: walk for walk in walks(both, x)}
    assert set(found) == {"rotation", "flip_x", TOGETHER}
    assert torch.equal(found["flip_x"].views[:, 1], x.flip(-1))
    plain = {walk.name: walk for walk in walks(affine("rotation", rotation=90), x)}
    torch.testing.assert_close(found["rotation"].views, plain["rotation"].views)
    mixed = Correlated(affine(["rotation", "scale_x"], rotation=90, scale_x=1.2))
    turned = {walk.name: walk for walk in walks(mixed, x)}["rotation"]
    torch.testing.assert_close(turned.views, plain["rotation"].views)


def test_walking_changes_nothing():
    transform = affine(rotation=90, scale_x=1.1)
    before = transform.eta.clone()
    walks(transform, images())
    assert torch.equal(transform.eta, before)


def test_the_opposite_of_a_factor_is_its_inverse():
    assert signed(FACTOR, math.log(2)) == 2 and signed(FACTOR, -math.log(2)) == 0.5
    assert (
        signed(DEGREES, -math.pi) == -180 and signed(PLAIN, -0.0) == 0 and str(signed(PLAIN, -0.0)) == "0.0"
    )
