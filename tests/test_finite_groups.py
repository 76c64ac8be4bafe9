"""Finite groups: the axioms, exact orbits, and the relaxed choice that learns their chance."""

import pytest
import torch

from augury.core.rng import generator
from augury.transforms.finite_groups import CyclicRotation, Flip, Translations, leave_weight
from refusal import refused

GROUPS = [
    (CyclicRotation(2), (5, 8)),
    (CyclicRotation(4), (8, 8)),
    (Flip("x"), (5, 8)),
    (Flip("y"), (5, 8)),
    (Translations(3), (9, 12)),
    (Translations(3), (28, 28)),
    (Translations(2, "x"), (5, 8)),
    (Translations(4, "y"), (9, 3)),
]
exactly = pytest.mark.parametrize(
    ("group", "size"), GROUPS, ids=[f"{group.names[0]} on {H} x {W}" for group, (H, W) in GROUPS]
)


def images(H: int, W: int, C: int = 2) -> torch.Tensor:
    return torch.rand(3, C, H, W, generator=generator(0), dtype=torch.float64)


@exactly
def test_the_orbit_is_that_of_a_group(group, size):
    x = images(*size)
    orbit = group.orbit(x)
    assert group.exact
    assert orbit.shape == (3, group.order, 2, *size)
    assert torch.equal(orbit[:, 0], x)
    assert len({tuple(view.flatten().tolist()) for view in orbit[0]}) == group.order, "all elements differ"
    for j in range(group.order):  # closed: the orbit of a view is the orbit, in another order
        again = group.orbit(orbit[:, j])
        rows = {tuple(view.flatten().tolist()) for view in orbit[0]}
        assert {tuple(view.flatten().tolist()) for view in again[0]} == rows


def undone(group, x):
    """Return every element of the orbit, brought back by the element that undoes it."""
    return torch.stack([group.element(view, group.inverse_of(j)) for j, view in enumerate(group.orbit(x).unbind(1))], 1)


@exactly
def test_the_inverse_brings_every_view_back_to_the_bit(group, size):
    x = images(*size, C=1)
    assert torch.equal(undone(group, x), x[:, None].expand(-1, group.order, -1, -1, -1))


@pytest.mark.parametrize("n", [3, 6, 8])
def test_other_rotations_are_inverted_up_to_interpolation(n):
    group = CyclicRotation(n)
    axis = torch.linspace(-1, 1, 33, dtype=torch.float64)
    x = torch.exp(-6 * ((axis[:, None] - 0.2) ** 2 + axis**2))[None, None]
    assert not group.exact
    back = undone(group, x)
    assert (back - x[:, None]).abs().max() < 0.03
    assert (group.orbit(x)[:, 1] - x).abs().max() > 0.2


def test_elements_by_name_and_quarter_turns_inside_c8():
    x = torch.arange(6.0).reshape(1, 1, 2, 3)
    assert Flip("x").orbit(x)[0, 1, 0].tolist() == [[2, 1, 0], [5, 4, 3]]
    assert Flip("y").orbit(x)[0, 1, 0].tolist() == [[3, 4, 5], [0, 1, 2]]
    assert Translations(3, "x").orbit(x)[0, :, 0, 0].tolist() == [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    square = x.reshape(1, 1, 2, 3)[..., :2]
    assert torch.equal(CyclicRotation(4).orbit(square)[:, 1], torch.rot90(square, 1, (-2, -1)))
    x = images(7, 7)
    assert torch.equal(CyclicRotation(8).orbit(x)[:, ::2], CyclicRotation(4).orbit(x))


def test_the_torus_leaves_the_last_pixel_and_shares_a_border_of_two():
    x = images(28, 28)
    orbit = Translations(3).orbit(x)
    assert torch.equal(orbit[..., 27, 27], x[:, None, :, 27, 27].expand(-1, 9, -1))
    assert torch.equal(orbit[:, 1, :, :27, 9:27], x[..., :27, :18])
    assert torch.equal(orbit[:, 3, :, 9:27, :27], x[..., :18, :27])
    x = images(11, 11)
    orbit = Translations(3).orbit(x)
    for edge in (0, 10):
        assert torch.equal(orbit[..., edge, edge], x[:, None, :, edge, edge].expand(-1, 9, -1))
    assert torch.equal(orbit[:, 1, :, 1:10, 4:10], x[..., 1:10, 1:7])


def test_bad_groups_and_images_are_refused():
    refused("square", CyclicRotation(4).orbit, images(5, 8))
    refused("at least 2", CyclicRotation, 1)
    refused("axis must be one of", Flip, "z")
    refused("at least 3 pixels", Translations(3).orbit, images(2, 8))
    refused("temperature", Flip, temperature=0.0)


@pytest.mark.parametrize("p", [0.05, 0.25, 0.5, 0.7])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_a_rounded_choice_leaves_with_chance_p(p, temperature):
    eps = torch.linspace(-1, 1, 20001, dtype=torch.float64)[None]
    w = leave_weight(torch.tensor(p, dtype=torch.float64), eps, 0.75, temperature)
    assert (w > 0.5).double().mean().item() == pytest.approx(p, abs=0.011)
    assert w.min() >= 0
    assert w.max() <= 1


def test_choices_grow_sharper_with_the_chance():
    eps = torch.linspace(-1, 1, 2001, dtype=torch.float64)[None]
    half = torch.tensor(0.5, dtype=torch.float64)
    weights = {t: leave_weight(half, eps, 0.5, t) for t in (1.0, 0.2)}
    blended = {t: float(((w - 0.5).abs() < 0.45).double().mean()) for t, w in weights.items()}
    assert blended[1.0] > 0.85 and blended[0.2] < 0.3


@pytest.mark.parametrize("group", [Flip("x"), CyclicRotation(4), Translations(3)], ids=lambda g: g.names[0])
def test_at_full_chance_every_element_is_as_likely(group):
    x = images(9, 9, C=1)[:1].float()
    hard = type(group)(relaxation="straight_through")
    hard.set_widths({hard.names[0]: 100 * hard.specs[0].upper})
    views = hard(x, 4000, generator(0))[0]
    orbit = group.orbit(x)[0]
    same = (views[:, None] == orbit).flatten(2).all(-1)
    assert same.sum(1).eq(1).all(), "every hard view is an element of the orbit, to the bit"
    shares = same.double().mean(0)
    assert torch.allclose(shares, torch.full_like(shares, 1 / group.order), atol=0.04)


def test_straight_through_has_the_gradient_of_the_blend_and_negative_steps_end_at_zero():
    x = images(6, 6)
    soft, hard = Flip("x"), Flip("x", relaxation="straight_through")
    eps = soft.noise(3, 5, generator(1)).double()
    for group in (soft, hard):
        group.double().set_widths({"flip_x": 30})
    slopes = [torch.autograd.grad(g.act(x, eps)[..., 0, 0].sum(), g.eta)[0] for g in (soft, hard)]
    assert torch.allclose(*slopes)
    assert slopes[0].abs() > 0
    group = Flip("x")
    with torch.no_grad():
        group.eta.fill_(-0.2)
    group.project_()
    assert group.eta.item() == 0


@pytest.mark.parametrize("relaxation", ["soft", "straight_through"])
@pytest.mark.parametrize("group", [Flip, CyclicRotation], ids=["flip_x", "C4"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_the_chance_is_learned_from_zero(group, relaxation, symmetric):
    # Targets are means over the orbit (full invariance is right) or the images themselves (none is).
    transform, x = group(relaxation=relaxation), images(5, 5).float()
    target = transform.orbit(x).mean(1) if symmetric else x
    optimiser = torch.optim.Adam(transform.parameters(), lr=0.03)
    for step in range(120):
        optimiser.zero_grad()
        (transform(x, 60, generator(step)).mean(1) - target).square().mean().backward()
        optimiser.step()
        transform.project_()
    share = transform.eta.item() / transform.specs[0].upper
    assert share > 0.85 if symmetric else share < 0.1
