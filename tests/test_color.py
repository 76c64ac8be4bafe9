"""Colour and blur: closed forms, and kornia's operators as oracle (where they do not clip)."""

import math

import pytest
import torch
from torch import Tensor

from augury.core.rng import generator
from augury.transforms.color import Color, blur
from refusal import refused


def images(C: int = 3, n: int = 8) -> Tensor:
    """Return images so near mid-grey that no operator leaves [0, 1]: kornia's clipping stays idle."""
    return 0.4 + 0.2 * torch.rand(4, C, n, n, generator=generator(0), dtype=torch.float64)


def view(x: Tensor, eps: float = 1.0, **widths: float) -> Tensor:
    transform = Color(list(widths)).double()
    transform.set_widths(widths)
    return transform.act(x, torch.full((len(x), 1, len(widths)), eps, dtype=torch.float64))[:, 0]


@pytest.mark.parametrize("eps", [1.0, -1.0])
def test_factors_agree_with_kornia(eps):
    from kornia import enhance

    x, factor = images(), 1.5**eps
    assert torch.allclose(view(x, eps, brightness=1.5), enhance.adjust_brightness_accumulative(x, factor))
    contrast = enhance.adjust_contrast_with_mean_subtraction(x, factor)
    assert torch.allclose(view(x, eps, contrast=1.5), contrast)
    saturated = enhance.adjust_saturation_with_gray_subtraction(x, factor)
    assert torch.allclose(view(x, eps, saturation=1.5), saturated)


def test_operations_act_in_the_stated_order():
    x = images()
    widths = {"brightness": 1.2, "contrast": 1.3, "saturation": 1.4, "hue": 30.0, "grey": 40.0, "blur": 1.0}
    one_by_one = x
    for name, value in widths.items():
        one_by_one = view(one_by_one, **{name: value})
    assert torch.allclose(view(x, **widths), one_by_one, atol=1e-12)


def test_grey_goes_to_kornias_grey():
    from kornia.color import rgb_to_grayscale

    x = images()
    grey = rgb_to_grayscale(x).expand_as(x)
    assert torch.allclose(view(x, grey=100.0), grey)
    assert torch.allclose(view(x, -0.5, grey=100.0), (x + grey) / 2), "the noise of a share has no sign"


def test_hue_permutes_channels_at_120_degrees_and_keeps_grey_pixels_and_means():
    from kornia.enhance import adjust_hue

    x = images()
    turned = view(x, hue=120.0)
    assert torch.allclose(turned, x.roll(1, dims=1), atol=1e-12)
    assert torch.allclose(turned, adjust_hue(x, 2 * math.pi / 3), atol=1e-5)
    x = images()
    turned = view(x, hue=77.0)
    assert torch.allclose(turned.mean(1), x.mean(1), atol=1e-12)
    assert (turned - x).abs().max() > 0.01
    grey = x[:, :1].expand_as(x)
    assert torch.allclose(view(grey, hue=77.0), grey, atol=1e-12)


def test_blur_solves_the_heat_equation():
    x, t = images(), torch.full((4, 1), 0.7, dtype=torch.float64)
    pad = torch.nn.functional.pad(x, (1, 1, 1, 1), mode="replicate")
    laplacian = pad[..., 1:-1, 2:] + pad[..., 1:-1, :-2] + pad[..., 2:, 1:-1] + pad[..., :-2, 1:-1] - 4 * x
    slope = (blur(x, t * 0 + 1e-6)[:, 0] - x) / 1e-6
    assert torch.allclose(slope, laplacian / 2, atol=1e-5)
    assert torch.allclose(blur(blur(x, t)[:, 0], 2 * t), blur(x, 3 * t), atol=1e-12)


def test_blur_has_the_variance_that_its_width_says_and_keeps_constants():
    x = torch.zeros(1, 1, 31, 41, dtype=torch.float64)
    x[..., 15, 20] = 1
    for sigma in (0.1, 0.5, 2.0):
        out = view(x, blur=sigma)[0, 0]
        assert out.sum().item() == pytest.approx(1)
        variance = (out.sum(0) * (torch.arange(41) - 20) ** 2).sum().item()
        assert variance == pytest.approx(sigma**2, rel=1e-6)
    x = torch.full((1, 2, 5, 9), 0.3, dtype=torch.float64)
    assert torch.allclose(view(x, blur=3.0), x, atol=1e-12)


def test_wide_blur_agrees_with_kornias_sampled_gaussian():
    from kornia.filters import gaussian_blur2d

    x = images(1, 48)
    ours, theirs = view(x, blur=2.5), gaussian_blur2d(x, (25, 25), (2.5, 2.5))
    inside = (..., slice(12, -12), slice(12, -12))  # the two treat borders differently
    spread = theirs[inside].std()
    assert (ours - theirs)[inside].abs().max() < 0.1 * spread < (view(x, blur=2.0) - theirs)[inside].abs().max()


@pytest.mark.parametrize("C", [1, 2, 4])
def test_any_number_of_channels_for_those_that_need_no_colour(C):
    x = images(C)
    assert torch.allclose(view(x, brightness=1.5), 1.5 * x)
    mean = x.mean((1, 2, 3), keepdim=True)
    assert torch.allclose(view(x, contrast=1.5), mean + 1.5 * (x - mean))


def test_three_channels_are_asked_for_by_name():
    says = r"saturation and grey need images with 3 channels.*got 1.*brightness"
    refused(says, Color(["saturation", "grey", "blur"]), images(1), 2, generator(0))
    refused("Did you mean 'hue'", Color, ["hues"])
    refused("at least one", Color, [])


def test_black_pixels_and_grey_images_have_gradients():
    x = torch.zeros(2, 3, 6, 6, dtype=torch.float64)
    x[:, :, 2:4, 2:4] = 0.5
    transform = Color().double()
    for eta in (0.0, 0.1):
        with torch.no_grad():
            transform.eta.fill_(eta)
        eps = transform.noise(2, 5, generator(0)).double()
        (grad,) = torch.autograd.grad(transform.act(x, eps).square().sum(), transform.eta)
        assert torch.isfinite(grad).all()
        assert grad[0].abs() > 1e-3
