"""OrbitAverage against a naive loop, finite differences and closed forms, in float64."""

import math

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.models.orbit import OrbitAverage
from augury.models.small import MLP
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from reference.differences import central_difference
from reference.orbit import orbit_average
from refusal import refused

WIDTHS = torch.tensor([0.2, 0.1, 0.7, 0.15, 0.25, 0.1], dtype=torch.float64)


class Recorder(nn.Module):
    """Passes inputs on and remembers how many came in each call."""

    def __init__(self, net):
        super().__init__()
        self.net, self.sizes = net, []

    def forward(self, x):
        self.sizes.append(len(x))
        return self.net(x)


def with_widths(transform, eta):
    transform.double()
    with torch.no_grad():
        transform.eta.copy_(eta)
    return transform


def on_images(eta=WIDTHS, **options):
    net = MLP([2 * 6 * 7, 9, 3], generator(0)).double()
    return OrbitAverage(net, with_widths(Affine2d((6, 7)), eta), **options)


def on_points(eta=0.8, sampling="independent", **options):
    net = MLP([2, 9, 3], generator(0)).double()
    transform = with_widths(AffineCoordinates("rotation", sampling), torch.tensor([eta], dtype=torch.float64))
    return OrbitAverage(net, transform, **options)


def images(B=5):
    return torch.rand(B, 2, 6, 7, generator=generator(1), dtype=torch.float64)


def points(B=5):
    return torch.randn(B, 2, generator=generator(1), dtype=torch.float64)


CASES = [(on_images, images), (on_points, points)]


@pytest.mark.parametrize(("make", "inputs"), CASES)
def test_average_is_the_naive_loop(make, inputs):
    model, x = make(), inputs()
    eps = model.transform.noise(len(x), 7, generator(3)).to(x)
    expected = orbit_average(model.net, model.transform, x, eps)
    torch.testing.assert_close(model.average(x, generator(3), samples=7), expected, rtol=1e-12, atol=1e-13)
    assert not torch.allclose(expected, model.net(x), atol=1e-3)  # an average that ignored eta would be seen


@pytest.mark.parametrize("training", [True, False])
def test_samples_are_folded_into_one_forward_pass(training):
    model = on_points(samples=4, samples_eval=6).train(training)
    model.net = Recorder(model.net)
    assert model(points(5)).shape == (5, 3)
    assert model.net.sizes == [20 if training else 30]


def test_views_of_one_input_are_side_by_side_and_other_names_for_samples():
    model = on_points(eta=0.0)
    x = points(3)
    torch.testing.assert_close(model.views(x, generator(0), samples=4), x.repeat_interleave(4, 0), rtol=0, atol=0)
    model = on_points(n_samples=3, S_eval=5)
    assert (model.samples, model.samples_eval) == (3, 5)
    refused("n_samples and samples", on_points, n_samples=3, samples=3)


@pytest.mark.parametrize("chunk", [1, 12, 13, 35, 1000])
def test_chunks_bound_the_forward_pass_and_change_nothing(chunk):
    x = points(11)
    whole = on_points(samples_eval=6).eval()(x)
    model = on_points(samples_eval=6, chunk=chunk).eval()
    model.net = Recorder(model.net)
    torch.testing.assert_close(model(x), whole, rtol=1e-12, atol=1e-13)
    assert max(model.net.sizes) <= max(chunk, 6) and sum(model.net.sizes) == 66


@pytest.mark.parametrize(("make", "inputs"), CASES)
def test_evaluation_repeats_itself_and_training_does_not(make, inputs):
    model, x = make(), inputs()
    assert torch.equal(model.eval()(x), model(x))
    assert not torch.allclose(model.train()(x), model(x), atol=1e-6)


def test_evaluation_follows_its_seed_and_training_the_global_one():
    x = points()
    before = torch.get_rng_state()
    assert torch.equal(on_points(seed=1).eval()(x), on_points(seed=1).eval()(x))
    assert not torch.allclose(on_points(seed=1).eval()(x), on_points(seed=2).eval()(x), atol=1e-6)
    assert torch.equal(torch.get_rng_state(), before)
    model, x = on_points().train(), points()
    outputs = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        outputs.append(model(x))
    assert torch.equal(outputs[0], outputs[1]) and not torch.allclose(outputs[0], outputs[2], atol=1e-6)


@pytest.mark.parametrize(("make", "inputs"), CASES)
def test_gradient_in_eta_matches_finite_differences(make, inputs):
    model, x = make(), inputs()
    target = torch.arange(len(x)) % 3

    def loss():
        return nn.functional.cross_entropy(model.average(x, generator(4), samples=6), target)

    eta = model.transform.eta
    (gradient,) = torch.autograd.grad(loss(), [eta])
    assert gradient.abs().min() > 1e-6
    assert central_difference(loss, eta).tolist() == pytest.approx(gradient.tolist(), rel=1e-5, abs=1e-9)


def test_gradient_in_the_weights_is_that_of_the_naive_loop():
    model, x = on_images(), images()
    eps = model.transform.noise(len(x), 3, generator(3)).to(x)
    theta = list(model.net.parameters())
    fast = torch.autograd.grad(model.average(x, generator(3), samples=3).square().sum(), theta)
    slow = torch.autograd.grad(orbit_average(model.net, model.transform, x, eps).square().sum(), theta)
    for ours, naive in zip(fast, slow, strict=True):
        torch.testing.assert_close(ours, naive, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_without_width_it_is_the_network_itself(training):
    # S is a power of two: the mean of S equal numbers has no rounding, so equality is exact.
    model, x = on_points(eta=0.0, samples=8, samples_eval=8).train(training), points()
    torch.testing.assert_close(model(x), model.net(x), rtol=1e-15, atol=1e-15)
    model = on_images(eta=torch.zeros(6), samples=5, samples_eval=5).train(training)
    torch.testing.assert_close(model(images()), model.net(images()), rtol=1e-12, atol=1e-13)


def test_a_full_turn_on_a_grid_makes_a_network_invariant():
    # S equally spaced angles with both ends: turning the input by the spacing moves all views by one place.
    S = 9
    model = on_points(eta=math.pi * (1 - 1 / S), sampling="grid", samples_eval=S).eval()
    x = points()
    angle = torch.tensor(2 * math.pi / S, dtype=torch.float64)
    turn = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
    torch.testing.assert_close(model(x @ turn.T), model(x), rtol=1e-6, atol=1e-7)
    assert not torch.allclose(model.net(x @ turn.T), model.net(x), atol=1e-2)


def test_more_views_come_nearer_to_the_integral():
    x = points(200)
    exact = on_points(sampling="grid", samples_eval=2001).eval()(x)
    means = [on_points().average(x, generator(0), S) for S in (4, 64)]
    errors = [(mean - exact).square().mean().item() for mean in means]
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.4)  # variance falls as 1 / S


class SquaredLength(nn.Module):
    """A network of the user's own, without weights, that no rotation changes."""

    def forward(self, x):
        return x.square().sum(1, keepdim=True)


def test_a_network_of_the_users_own_is_averaged():
    model = OrbitAverage(SquaredLength(), on_points().transform).eval()
    torch.testing.assert_close(model(points()), points().square().sum(1, keepdim=True))


@pytest.mark.parametrize("option", ["samples", "samples_eval", "chunk"])
@pytest.mark.parametrize("value", [0, -3])
def test_orbits_need_a_view(option, value):
    refused(f"{option} must be at least 1; got {value}", on_points, **{option: value})


def test_views_keep_their_precision_under_autocast():
    model = OrbitAverage(nn.Sequential(nn.Flatten(), nn.Linear(64, 2)), Affine2d((8, 8), "rotation"), samples=3)
    model.transform.set_widths({"rotation": 90.0})
    x = torch.rand(4, 1, 8, 8, generator=generator(0))
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model.views(x, generator(1))
        assert model.average(x, generator(1)).dtype == torch.bfloat16
    assert torch.equal(rounded, model.views(x, generator(1)))
