"""Signals: shifts of whole samples, stretches and gains in closed form."""

import numpy as np
import pytest
import torch

from augury.core.rng import generator
from augury.transforms.signal1d import CircularShift, Mirror, Signal1d
from augury.transforms.vocabulary import build
from refusal import refused


def view(x, eps=1.0, **widths):
    transform = Signal1d(x.shape[-1], list(widths)).double()
    transform.set_widths(widths)
    return transform.act(x, torch.full((len(x), 1, len(widths)), eps, dtype=torch.float64))[:, 0].detach()


@pytest.fixture
def x():
    return torch.rand(3, 2, 15, generator=generator(0), dtype=torch.float64)


def test_a_shift_of_whole_samples_and_a_gain(x):
    later = view(x, time_shift=4.0)
    assert torch.allclose(later[..., :-4], x[..., 4:], atol=1e-12)
    assert later[..., -4:].abs().max() < 1e-12
    earlier = view(x, -1.0, time_shift=4.0)
    assert torch.allclose(earlier[..., 4:], x[..., :-4], atol=1e-12)
    assert torch.allclose(view(x, amplitude=3.0), 3 * x)
    assert torch.allclose(view(x, -1.0, amplitude=3.0), x / 3)


def test_a_stretch_is_linear_interpolation_about_the_middle(x):
    out = view(x, time_stretch=1.7)
    at = 7 + 1.7 * (np.arange(15) - 7)
    inside = (at >= 0) & (at <= 14)
    for b in range(3):
        for c in range(2):
            expected = np.interp(at, np.arange(15), x[b, c].numpy())
            assert out[b, c].numpy()[inside] == pytest.approx(expected[inside])
    assert out[..., (at < -1) | (at > 15)].abs().max() == 0


def test_all_together_is_gain_times_the_map_of_time(x):
    together = view(x, time_shift=2.0, time_stretch=1.3, amplitude=2.0)
    # exp of the sum of a shift and a stretch s: t -> e^s t + shift (e^s - 1) / s
    s = np.log(1.3)
    at = 7 + 1.3 * (np.arange(15) - 7) + 2.0 * (1.3 - 1) / s
    inside = (at >= 0) & (at <= 14)
    expected = 2 * np.interp(at, np.arange(15), x[0, 0].numpy())
    assert together[0, 0].numpy()[inside] == pytest.approx(expected[inside])


def test_order_of_names_does_not_matter_and_mistakes_are_told(x):
    assert Signal1d(15, ["amplitude", "time_shift"]).names == ("time_shift", "amplitude")
    refused("15 samples; got 14", Signal1d(15), x[..., 1:], 2, generator(0))
    refused("Did you mean 'time_shift'", Signal1d, 15, ["time_shft"])
    refused("at least one", Signal1d, 15, [])


def shifted(x, samples):
    transform = CircularShift(x.shape[-1]).double()
    transform.set_widths({"circular_shift": abs(samples)})
    eps = torch.full((len(x), 1, 1), float(np.sign(samples)), dtype=torch.float64)
    return transform.act(x, eps)[:, 0].detach()


@pytest.mark.parametrize("length", [14, 15])
def test_a_circular_shift_of_whole_samples_rolls(x, length):
    x = x[..., :length]
    for samples in (1, 4, -3, length // 2):
        assert torch.allclose(shifted(x, samples), x.roll(-samples, -1), atol=1e-12)


@pytest.mark.parametrize("length", [14, 15])
def test_a_circular_shift_is_exact_between_samples_for_waves_and_shifts_add_up(x, length):
    t = torch.arange(length, dtype=torch.float64)
    wave = lambda s: torch.cos(2 * torch.pi * 3 * (t + s) / length + 0.4).expand(1, 1, -1)  # noqa: E731
    assert torch.allclose(shifted(wave(0.0), 2.3), wave(2.3), atol=1e-12)
    x = x[..., :15]  # of odd length: an even one has a frequency without a phase
    assert torch.allclose(shifted(shifted(x, 1.7), 2.1), shifted(x, 3.8), atol=1e-12)
    assert torch.allclose(shifted(shifted(x, 1.7), -1.7), x, atol=1e-12)


def test_the_widest_circular_shift_makes_every_start_equally_likely(x):
    transform = CircularShift(15, "centred").double()
    transform.set_widths({"circular_shift": 7.5})  # half of 15 samples, the bound
    refused("at most 7.5 samples", transform.set_widths, {"circular_shift": 8.0})
    mean = transform(x, 15, generator(0)).mean(1)
    assert torch.allclose(mean, x.mean(-1, keepdim=True).expand_as(mean), atol=1e-12)
    narrower = CircularShift(15, "centred").double()
    narrower.set_widths({"circular_shift": 3.0})
    assert (narrower(x, 15, generator(0)).mean(1) - mean).abs().max() > 0.01


def test_the_mirror_reverses_with_the_chance_of_its_width(x):
    mirror = Mirror(relaxation="straight_through").double()
    assert torch.equal(mirror.element(x, 1), x.flip(-1)) and torch.equal(mirror.element(x, 0), x)
    mirror.set_widths({"mirror": 30.0})
    views = mirror(x, 4000, generator(0))
    reversed_ = (views - x.flip(-1)[:, None]).abs().amax((2, 3)) < 1e-12
    kept = (views - x[:, None]).abs().amax((2, 3)) < 1e-12
    assert bool((reversed_ | kept).all()) and reversed_.double().mean().item() == pytest.approx(0.3, abs=0.02)
    refused("at most 50 %", mirror.set_widths, {"mirror": 60.0})


def test_the_words_of_closed_signals_build_them():
    closed = build("outline", "signal", (1, 15))
    assert closed.names == ("mirror", "circular_shift")
    assert [spec.unit.symbol for spec in closed.specs] == ["%", "samples"]
    assert build("amplitude,circular_shift", "signal", (1, 15)).names == ("circular_shift", "amplitude")
    assert type(build("mirror", "signal", (1, 15))) is Mirror
    assert "circular_shift" not in build("signal", "signal", (1, 15)).names
    refused("acts on data of kind signal", build, "mirror", "image", (1, 8, 8))
