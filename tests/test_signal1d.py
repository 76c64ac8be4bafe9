"""Signals: shifts of whole samples, stretches and gains in closed form."""

import numpy as np
import pytest
import torch

from augury.core.rng import generator
from augury.transforms.signal1d import Signal1d
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
