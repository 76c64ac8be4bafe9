"""LI, DI, SI and agreement against a naive double loop in float64, and what must hold of them."""

import sys

import pytest
import torch
from torch import nn

from augury.auditing.audit import audit
from augury.auditing.measures import check_method, compare
from augury.auditing.orbits import orbit_of
from augury.auditing.statistics import SetStatistics
from augury.core.rng import generator
from augury.models.small import MLP
from augury.models.weight_tied import tie
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from augury.transforms.color import Color
from augury.transforms.compose import Compose
from augury.transforms.finite_groups import CyclicRotation, Flip, Translations
from augury.transforms.points3d import Rotation3d
from augury.transforms.signal1d import Signal1d
from reference import audit as naive
from refusal import refused

GROUPS = [CyclicRotation(4), Flip("x"), Translations(3), Translations(2, "y")]


def images(B=7, C=1, side=6):
    return torch.rand(B, C, side, side, generator=generator(1), dtype=torch.float64)


def network(C=1, side=6, outputs=4):
    return MLP([C * side * side, 16, 16, outputs], generator(0), "relu").double()


def seen_by(net, x, transform, saliency="gradient"):
    orbit = orbit_of(transform, x.shape[1:])
    drawn = orbit.draw(len(x), generator(0))
    return orbit, drawn, compare(net, x, drawn.apply, orbit.S, saliency)


def naive_measures(net, x, group):
    elements = range(1, group.order)
    views = [lambda x, j=j: group.element(x[None], j)[0] for j in elements]
    back = [lambda m, j=j: group.element(m[None], group.inverse_of(j))[0] for j in elements]
    return naive.measures(net, x, views, back)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.names[0])
def test_measures_equal_a_naive_double_loop(group):
    net, x = network(), images()
    _, _, seen = seen_by(net, x, group)
    expected = naive_measures(net, x, group)
    assert expected["LI"].min() > 1e-6  # a network that is not invariant, or nothing would be compared
    found = {"LI": seen.LI, "DI": seen.DI, "SI": seen.SI, "agreement": seen.agree.double()}
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_a_set_in_batches_gives_means_errors_and_spread_of_the_naive_loop():
    net, x, group = network(), images(23), CyclicRotation(4)
    y = torch.arange(23) % 3
    orbit = orbit_of(group, x.shape[1:])
    tally = SetStatistics(orbit, groups=4)
    for part, labels in zip(x.split(5), y.split(5), strict=True):
        tally.add(compare(net, part, orbit.draw(len(part), generator(0)).apply, orbit.S), labels)
    scores = tally.scores()
    assert scores.images == 23
    for name, values in naive_measures(net, x, group).items():
        cases = [(scores, values)]
        cases += [(tally.scores(level=level), values[:, level : level + 1]) for level in range(3)]
        cases += [(tally.scores(group=label), values[y == label]) for label in range(3)]
        for found, expected in cases:
            mean, stderr = naive.mean_and_stderr(expected)
            assert getattr(found, name).value == pytest.approx(mean, rel=1e-9)
            assert getattr(found, name).stderr == pytest.approx(stderr, rel=1e-7, abs=1e-12)
    assert tally.by_class.n.tolist() == [8, 8, 7, 0], "a class without inputs is counted as none"
    with torch.no_grad():
        spread = naive.pair_distance(net(x))
    assert tally.spread() == pytest.approx(spread, rel=1e-9)
    assert scores.LI_relative == pytest.approx(scores.LI.value / spread, rel=1e-9)


def test_large_offsets_of_the_logits_do_not_drown_their_spread():
    net, x = network(), images(12)
    orbit = orbit_of(Flip("x"), x.shape[1:])
    spreads = []
    for offset in (0.0, 1e4):
        tally = SetStatistics(orbit, 4)
        for part in x.split(4):
            f = lambda x, offset=offset: net(x) + offset  # noqa: E731
            tally.add(compare(f, part, orbit.draw(4, generator(0)).apply, 1), torch.zeros(4, dtype=torch.int64))
        spreads.append(tally.spread())
    assert spreads[1] == pytest.approx(spreads[0], rel=1e-4)


@pytest.mark.parametrize(
    ("transform", "x"),
    [
        (Affine2d((6, 6), "rotation"), images()),
        (Affine2d((6, 6)), images(C=3)),
        (Color(), images(C=3)),
        (Compose([CyclicRotation(4), Affine2d((6, 6), "shear")]), images()),
        (Signal1d(9), torch.rand(5, 2, 9, generator=generator(2), dtype=torch.float64)),
        (Rotation3d(), torch.randn(5, 8, 3, generator=generator(2), dtype=torch.float64)),
        (AffineCoordinates("affine"), torch.randn(5, 2, generator=generator(2), dtype=torch.float64)),
    ],
    ids=["rotation", "affine", "colour", "group and shear", "signals", "points", "coordinates"],
)
def test_saliency_of_a_view_is_the_pullback_of_its_gradient(transform, x):
    """For any transformation: m_g = J_g^T m(g x), with J_g by brute force."""
    net = MLP([x[0].numel(), 12, 3], generator(0), "relu").double()
    orbit, drawn, seen = seen_by(net, x, transform)
    assert seen.SI.min() < 0.999
    copies = x[:, None].expand(-1, orbit.S, *x.shape[1:])
    views = drawn.apply(copies)
    for b, s in ((0, 0), (len(x) - 1, orbit.S - 1)):
        m = naive.saliency(net, views[b, s])

        def view_of(one, b=b, s=s):
            return drawn.apply(torch.cat([copies[:b], one.expand(1, orbit.S, *x.shape[1:]), copies[b + 1 :]]))[b, s]

        J = torch.autograd.functional.jacobian(view_of, x[b]).reshape(x[b].numel(), x[b].numel())
        torch.testing.assert_close(seen.m_g[b, s].flatten(), J.T @ m.flatten(), rtol=1e-8, atol=1e-11)


def test_an_exactly_invariant_function_scores_zero_and_one_for_any_transformation():
    x = torch.randn(6, 2, generator=generator(3), dtype=torch.float64)

    def radius(x):
        r = x.square().sum(1, keepdim=True)
        return torch.cat([r, r.sqrt(), r.square()], 1)

    _, _, seen = seen_by(radius, x, AffineCoordinates("rotation"))
    assert seen.LI.max() < 1e-20
    torch.testing.assert_close(seen.SI, torch.ones_like(seen.SI))
    _, _, other = seen_by(lambda x: x.repeat(1, 2), x, AffineCoordinates("rotation"))
    assert other.LI.min() > 1e-3 and other.SI.min() < 0.5  # a function that is not invariant must be seen


def test_contrast_invariance_is_recognised_though_inverting_the_map_would_not_do():
    x = images(5, C=1)

    def shape_only(x):
        centred = (x - x.mean((1, 2, 3), keepdim=True)).flatten(1)
        return (centred / centred.norm(dim=1, keepdim=True))[:, :4]

    _, _, seen = seen_by(shape_only, x, Color(["contrast"]))
    assert seen.LI.max() < 1e-20
    torch.testing.assert_close(seen.SI, torch.ones_like(seen.SI))


def test_constant_and_one_sided_maps_have_a_defined_similarity():
    x = images(4)
    _, _, seen = seen_by(lambda x: torch.ones(len(x), 3, dtype=x.dtype), x, Flip("x"))
    assert seen.SI.tolist() == [[1.0]] * 4 and seen.LI.tolist() == [[0.0]] * 4
    half = torch.zeros(2, 1, 2, 2, dtype=torch.float64)
    half[..., 0] = 1.0  # lit on the left only

    def left_only(x):
        return torch.cat(
            [x[..., 0].sum((1, 2), keepdim=False)[:, None].clamp(min=0.5), x.sum((1, 2, 3))[:, None] * 0], 1
        )

    _, _, seen = seen_by(left_only, half, Flip("x"))
    assert seen.SI.tolist() == [[0.0]] * 2


def test_without_gradients_there_is_no_SI_and_the_rest_is_the_same():
    net, x = network(), images()
    _, _, seen = seen_by(net, x, CyclicRotation(4))
    _, _, without = seen_by(net, x, CyclicRotation(4), saliency=None)
    assert without.SI is None
    for name in ("LI", "DI", "agree"):
        torch.testing.assert_close(getattr(without, name), getattr(seen, name))


class TestOrbits:
    def test_a_finite_group_shows_every_element_but_the_identity(self):
        orbit = orbit_of(CyclicRotation(4), (1, 6, 6))
        assert (orbit.S, orbit.levels, orbit.unit, orbit.name) == (3, (90.0, 180.0, 270.0), "deg", "C4")
        x = images(2)
        views = orbit.draw(2, generator(0)).apply(x[:, None].expand(-1, 3, -1, -1, -1))
        for s in range(3):
            assert torch.equal(views[:, s], torch.rot90(x, s + 1, (-2, -1)))

    def test_shifts_on_a_torus_are_as_strong_as_they_are_long(self):
        orbit = orbit_of(Translations(3), (1, 28, 28))
        assert orbit.unit == "px" and orbit.S == 8
        assert orbit.levels == (9.0, pytest.approx(9 * 2**0.5, abs=1e-4))
        membership = orbit.membership()
        assert membership.sum(0).tolist() == pytest.approx([1, 1])
        assert membership.gt(0).sum(0).tolist() == [4, 4]

    def test_a_distribution_is_asked_at_equal_steps_in_both_directions(self):
        rotation = Affine2d((6, 6), "rotation")
        rotation.set_widths({"rotation": 120})
        orbit = orbit_of(rotation, (1, 6, 6), levels=4)
        assert orbit.levels == (30.0, 60.0, 90.0, 120.0) and orbit.unit == "deg" and orbit.S == 8
        _, eps = orbit.draw(5, generator(0)).parts[0]
        expected = torch.tensor([0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1, 1])
        torch.testing.assert_close(eps.abs()[..., 0], expected.expand(5, 8))
        torch.testing.assert_close(eps[:, ::2], -eps[:, 1::2])

    def test_several_widths_are_asked_on_the_surface_of_the_cube(self):
        orbit = orbit_of(Affine2d((6, 6)), (1, 6, 6))
        assert orbit.unit == "%" and orbit.levels[-1] == 100
        _, eps = orbit.draw(5, generator(0)).parts[0]
        torch.testing.assert_close(eps.abs().amax(-1), torch.tensor(orbit.strengths).div(100).expand(5, 16).float())

    def test_widths_that_nobody_set_are_filled_in_and_the_given_transform_is_left_alone(self):
        given = Affine2d((28, 28), ["rotation", "translate_x", "scale_x"])
        widths = orbit_of(given, (1, 28, 28)).transform.describe()
        assert widths["translate_x"] == pytest.approx(3.5) and widths["rotation"] == pytest.approx(180)
        assert len(widths) == 3 and widths["scale_x"] == pytest.approx(1.284, abs=1e-3)
        assert not given.eta.any() and given.eta.requires_grad
        colour = orbit_of(Color(), (3, 6, 6)).transform.describe()
        assert (colour["blur"], colour["grey"], colour["hue"]) == (1, 100, pytest.approx(180))
        given.set_widths({"rotation": 10})
        assert orbit_of(given, (1, 28, 28)).transform.describe()["translate_x"] == 0
        refused("levels must be at least 1", orbit_of, given, (1, 28, 28), levels=0)


class TestRoundTrip:
    @pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.names[0])
    def test_exact_groups_cost_nothing(self, group):
        x = images(3)
        orbit = orbit_of(group, x.shape[1:])
        copies = x[:, None].expand(-1, orbit.S, *x.shape[1:])
        assert torch.equal(orbit.draw(3, generator(0)).round_trip(copies), copies)

    def test_interpolation_costs_something_and_a_quarter_turn_does_not(self):
        x = images(3)
        orbit = orbit_of(CyclicRotation(8), x.shape[1:])
        copies = x[:, None].expand(-1, 7, *x.shape[1:])
        error = (orbit.draw(3, generator(0)).round_trip(copies) - copies).abs().amax((0, 2, 3, 4))
        assert error[1::2].max() == 0 and error[::2].min() > 0.05

    def test_the_last_of_a_chain_is_undone_first(self):
        axis = torch.linspace(-1, 1, 41, dtype=torch.float64)
        x = torch.exp(-12 * ((axis[:, None] - 0.1) ** 2 + axis**2))[None, None]
        chain = Compose([Affine2d((41, 41), "translate_x"), Affine2d((41, 41), "rotation"), Flip("x")])
        chain.set_widths({"translate_x": 6, "rotation": 90})
        orbit = orbit_of(chain, x.shape[1:])
        copies = x[:, None].expand(-1, orbit.S, *x.shape[1:])
        drawn = orbit.draw(1, generator(0))
        assert (drawn.apply(copies) - copies).abs().amax() > 0.5
        assert (drawn.round_trip(copies) - copies).abs().amax() < 0.05

    def test_what_has_one_direction_is_left_out(self):
        x = images(3, C=3)
        orbit = orbit_of(Color(["blur", "grey"]), x.shape[1:])
        copies = x[:, None].expand(-1, orbit.S, *x.shape[1:])
        drawn = orbit.draw(3, generator(0))
        assert (drawn.apply(copies) - copies).abs().max() > 0.05
        torch.testing.assert_close(drawn.round_trip(copies), copies)


class TestCaptum:
    """captum itself, where its attributions are known in closed form: on linear and on quadratic functions."""

    @pytest.mark.parametrize("method", ["integrated_gradients", "input_x_gradient", "feature_ablation"])
    def test_maps_of_a_linear_function_are_input_times_weight_in_the_frame_of_the_input(self, method):
        net, x = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).double(), images(3, side=4)
        _, drawn, seen = seen_by(net, x, CyclicRotation(4), method)
        views = drawn.apply(x[:, None].expand(-1, 3, -1, -1, -1))
        W = net[1].weight[net(x).argmax(1)].reshape(3, 1, 4, 4).detach()
        torch.testing.assert_close(seen.m, x * W)
        for s in range(3):
            W = net[1].weight[net(views[:, s]).argmax(1)].reshape(3, 1, 4, 4).detach()
            torch.testing.assert_close(seen.m_g[:, s], torch.rot90(views[:, s] * W, -(s + 1), (-2, -1)))
        assert seen.SI.min() < 0.999  # a linear function is not invariant, and SI says so

    def test_integrated_gradients_of_squares_are_the_squares(self):
        x = images(3, side=4)

        def squares(x):
            total = x.square().sum((1, 2, 3))
            return torch.stack([total, -total], dim=1)

        _, _, seen = seen_by(squares, x, Affine2d((4, 4), "rotation"), "integrated_gradients")
        torch.testing.assert_close(seen.m, x.square(), rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize("method", ["integrated_gradients", "input_x_gradient", "feature_ablation"])
    def test_a_tied_network_scores_one_and_the_same_network_untied_does_not(self, method):
        x = images(4, side=6)
        tied = tie(network(), CyclicRotation(4)).double()
        assert seen_by(tied, x, CyclicRotation(4), method)[2].SI.min() > 1 - 1e-9
        assert seen_by(network(), x, CyclicRotation(4), method)[2].SI.min() < 0.9

    def test_the_whole_audit_runs_on_captums_maps(self):
        found = audit(network(), images(8), "C4", saliency="integrated_gradients", corruptions=False)
        assert found.saliency == "integrated_gradients" and found.SI.value < 0.95

    def test_noise_of_each_input_stays_with_it_in_captums_larger_batches(self):
        net, x = nn.Sequential(nn.Flatten(), nn.Linear(36, 3)).double(), images(4)
        _, _, by_captum = seen_by(net, x, Affine2d((6, 6)), "integrated_gradients")
        _, _, plain = seen_by(net, x, Affine2d((6, 6)))
        torch.testing.assert_close(by_captum.m_g, plain.m_g * x[:, None])

    def test_without_captum_the_error_says_what_to_do(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "captum.attr", None)
        check_method("gradient")
        refused("pip install captum", check_method, "integrated_gradients")
        refused("Did you mean 'gradient'", check_method, "gradeint")
