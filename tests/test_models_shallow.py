"""Paper B's networks: the kernel they stand for, the blur, and their orbit averages on either side."""

import math

import pytest
import torch
from torch import Tensor

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.models.orbit import OrbitAverage
from augury.models.shallow import Relu, Rff, Shallow, ShallowOrbit, moved_filters
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from augury.transforms.color import Color
from augury.transforms.finite_groups import Flip
from reference.differences import central_difference
from refusal import refused

IMAGE = (1, 12, 12)
NETS = {"rff": Rff, "relu": Relu}


def made(name: str, shape=IMAGE, seed: int = 0, **options) -> Shallow:
    return NETS[name](shape, 3, generator(seed), **{"units": 20, **options}).double()


def inputs(B: int = 5, shape=IMAGE) -> Tensor:
    return torch.rand(B, *shape, generator=generator(1), dtype=torch.float64)


def turned(degrees: float = 180.0, sampling: str = "independent", size=(12, 12)) -> Affine2d:
    transform = Affine2d(size, "rotation", sampling).double()
    transform.set_widths({"rotation": degrees})
    return transform


def test_prior_covariance_of_many_fourier_features_and_their_outputs_is_the_rbf_kernel():
    x = 0.8 * torch.randn(6, 4, generator=generator(2), dtype=torch.float64)
    sigma, alpha = 0.7, 1.5
    kernel = alpha**2 * torch.exp(-(sigma**2) * torch.cdist(x, x).square() / 2)
    errors = []
    for units in (200, 20_000):
        phi = Rff((4,), 1, generator(0), units, sigma, alpha).double().features(x)
        errors.append(float((phi @ phi.mT - kernel).abs().max()))
    assert errors[1] < 0.04  # four standard errors alpha^2 / sqrt(units)
    assert errors[1] < errors[0] / 3
    net, x = made("rff", (4,), units=4000, sigma=0.5, alpha=2.0), inputs(3, (4,))
    W = torch.randn(4000, 4000, generator=generator(3), dtype=torch.float64)
    f = net.features(x) @ W
    kernel = 4 * torch.exp(-0.25 * torch.cdist(x, x).square() / 2)
    assert (f @ f.mT / 4000 - kernel).abs().max() < 0.5


@pytest.mark.parametrize("name", NETS)
def test_the_forward_pass_is_the_output_layer_on_the_features(name):
    net, x = made(name, alpha=0.7), inputs()
    torch.testing.assert_close(net(x), net.features(x) @ net.output.weight.mT, rtol=1e-10, atol=1e-12)


def test_the_filters_are_blurred_by_the_width_that_was_asked_for():
    side, blur = 28, 0.1
    impulse = torch.zeros(1, side * side, dtype=torch.float64)
    impulse[0, 14 * side + 14] = 1.0
    spread = made("relu", (1, side, side), blur=blur).blurred(impulse).view(side, side)
    at = torch.arange(side, dtype=torch.float64) - 14
    assert spread.sum() == pytest.approx(1.0)
    assert float((spread.sum(0) * at**2).sum()) == pytest.approx((blur * side / 2) ** 2, rel=1e-3)
    sharp = made("relu", (1, side, side), blur=0.0).blurred(impulse)
    assert torch.equal(sharp, impulse)


def test_the_papers_blur_read_in_pixels_would_do_nothing_and_ours_limits_the_band():
    plain, ours = (made("rff", (1, 28, 28), blur=b).filters.view(-1, 28, 28) for b in (0.0, 0.1))

    def share_of_high_frequencies(w: Tensor) -> float:
        power = torch.fft.fft2(w).abs().square()
        f = torch.fft.fftfreq(28, dtype=torch.float64).abs()
        high = torch.maximum(f[:, None], f) > 0.25  # beyond half of what the grid can carry
        return float(power[:, high].sum() / power.sum())

    assert math.exp(-1 / (2 * 0.1**2)) < 1e-21
    assert share_of_high_frequencies(plain) > 0.5
    assert share_of_high_frequencies(ours) < 0.06  # most of it from the borders, which do not wrap round


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("shape", [(1, 12, 12), (2, 9, 9)])
def test_sides_agree_exactly_on_quarter_turns(name, shape):
    net, x = made(name, shape), inputs(4, shape)
    orbit = ShallowOrbit(net, turned(180.0, size=shape[1:]))
    eps = torch.tensor([-1.0, -0.5, 0.0, 0.5], dtype=torch.float64)[None, :, None]  # C4
    on_input, on_weight = (orbit.mean_features(x, eps, side) for side in ("input", "weight"))
    torch.testing.assert_close(on_input, on_weight, rtol=1e-9, atol=1e-10)
    assert (on_input - net.features(x)).abs().max() > 1e-3, "the transformation must do something"


def blobs(B: int, n: int = 28) -> Tensor:
    axis = torch.linspace(-1, 1, n, dtype=torch.float64)
    centre = 0.3 * torch.randn(B, 1, 2, 1, 1, generator=generator(0), dtype=torch.float64)
    return torch.exp(-12 * ((axis[:, None] - centre[:, :, 0]) ** 2 + (axis - centre[:, :, 1]) ** 2))


@pytest.mark.parametrize("name", NETS)
def test_sides_agree_within_interpolation_error_thanks_to_the_blur(name):
    x, eps = blobs(10), torch.linspace(-1, 1, 7, dtype=torch.float64)[None, :, None]

    def difference(blur: float) -> float:
        net = made(name, (1, 28, 28), blur=blur, units=50)
        orbit = ShallowOrbit(net, turned(60.0, size=(28, 28)))
        on_input, on_weight = (orbit.mean_features(x, eps, side) for side in ("input", "weight"))
        return ((on_input - on_weight).norm() / on_input.norm()).item()

    assert difference(0.1) < 0.01
    assert difference(0.0) > 2 * difference(0.1)


@pytest.mark.parametrize("name", NETS)
def test_sides_agree_exactly_on_coordinates(name):
    transform = AffineCoordinates("affine").double()
    transform.set_widths({"rotation": 70, "translate_x": 0.3, "scale_y": 1.4, "shear": 0.2})
    orbit, x = ShallowOrbit(made(name, (2,)), transform), inputs(6, (2,))
    eps = transform.noise(1, 5, generator(4)).double()
    on_input, on_weight = (orbit.mean_features(x, eps, side) for side in ("input", "weight"))
    torch.testing.assert_close(on_input, on_weight, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("side", ["input", "weight"])
def test_gradient_of_the_mean_features_in_eta(side):
    transform = turned(40.0)
    orbit, x = ShallowOrbit(made("rff", units=4), transform, side=side), blobs(3, 12)
    eps = transform.noise(1, 3, generator(0)).double()

    def value() -> Tensor:
        return orbit.mean_features(x, eps).sum()

    (exact,) = torch.autograd.grad(value(), transform.eta)
    torch.testing.assert_close(exact, central_difference(value, transform.eta), rtol=1e-5, atol=1e-8)


def test_the_cheaper_side_is_chosen_from_the_sizes():
    orbit = ShallowOrbit(made("rff", units=20), turned())
    assert (orbit.cheaper_side(5), orbit.cheaper_side(21)) == ("input", "weight")
    assert orbit.noise(5, 3, generator(0)).shape == (5, 3, 1)
    assert orbit.noise(21, 3, generator(0)).shape == (1, 3, 1)
    assert ShallowOrbit(made("rff"), turned(), side="weight").cheaper_side(2) == "weight"
    assert ShallowOrbit(made("rff"), Flip("x").double()).cheaper_side(500) == "input"


@pytest.mark.parametrize("side", ["auto", "input"])
def test_evaluation_is_that_of_any_orbit_average(side):
    net, transform, x = made("rff"), turned(60.0), inputs(30)
    orbit = ShallowOrbit(net, transform, samples_eval=5, side=side).eval()
    reference = OrbitAverage(net, transform, samples_eval=5).eval()
    torch.testing.assert_close(orbit(x), reference(x), rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(orbit(x)[:2], orbit(x[:2]), rtol=1e-9, atol=1e-10)


def test_evaluation_keeps_to_the_weights_when_told():
    x, transform = blobs(30, 12), turned(60.0)
    orbit = ShallowOrbit(made("rff"), transform, samples_eval=5, side="weight").eval()
    eps = transform.noise(1, 5, generator(orbit.seed)).double()
    by_hand = orbit.net.output(orbit.mean_features(x, eps, "weight"))
    torch.testing.assert_close(orbit(x), by_hand, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("side", ["input", "weight"])
def test_training_average_replays_from_one_generator(side):
    orbit, x = ShallowOrbit(made("relu"), turned(60.0), samples=3, side=side), inputs()
    first, again, other = (orbit.average(x, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_equally_spaced_and_stratified_noise():
    grid = ShallowOrbit(made("rff"), turned(90.0, "grid"), samples=5)
    assert torch.allclose(grid.noise(2, 5, generator(0))[0, :, 0], torch.linspace(-1, 1, 5))
    stratified = ShallowOrbit(made("rff"), turned(90.0, "stratified")).noise(2, 8, generator(0))
    assert (((stratified + 1) * 4).floor().sort(dim=1).values[..., 0] == torch.arange(8)).all()


def test_shared_filters_take_shared_noise_and_affine_transformations_only():
    orbit = ShallowOrbit(made("rff"), turned())
    with pytest.raises(InputError, match=r"must be \[1, S, K\]; got \[5, 2, 1\]"):
        orbit.mean_features(inputs(), orbit.transform.noise(5, 2, generator(0)).double(), "weight")
    with pytest.raises(InputError, match=r"only affine transformations.*got Color.*side='input'"):
        ShallowOrbit(made("rff"), Color(["brightness"]), side="weight")
    refused("Did you mean 'weight'", ShallowOrbit, made("rff"), turned(), side="weights")


def test_moved_filters_at_zero_width_are_the_filters():
    net = made("relu")
    filters, bias = moved_filters(net, turned(0.0), torch.zeros(2, 1, dtype=torch.float64))
    torch.testing.assert_close(filters, net.filters.expand(2, -1, -1), rtol=1e-12, atol=1e-12)
    assert torch.equal(bias, net.bias.expand(2, -1))


def test_bad_sizes():
    refused("at least one feature; got units = 0", made, "rff", units=0)
    refused("alpha must be above 0", made, "relu", alpha=0.0)
    refused("blur not below", made, "relu", blur=-1.0)
    refused("prior must not be below 0", made, "relu", prior=-1.0)


def test_the_first_layer_of_relu_is_pulled_towards_where_it_began_and_the_pull_is_not_saved():
    net, rff = made("relu", prior=0.5), made("rff")
    assert rff.hidden_penalty().item() == 0.0 == net.hidden_penalty().item()
    with torch.no_grad():
        net.hidden.weight += 0.1
    F, D = net.hidden.weight.shape
    expected = 0.5 * (F + D) / 2 * 0.1  # half the precision of Xavier's weights, 2 / (F + D) being their variance
    (g,) = torch.autograd.grad(net.hidden_penalty(), net.hidden.weight)
    assert torch.allclose(g, torch.full_like(g, expected), rtol=1e-4)
    assert "anchor" not in net.state_dict() and not made("relu", prior=0.0).precision
    refused("sigma must be above 0", made, "rff", sigma=0.0)
