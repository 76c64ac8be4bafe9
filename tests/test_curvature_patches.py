"""Patches against the convolution itself: conv(x) = patches . weight, in every dimension and with every option."""

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.curvature.layers import mean_patches, patches
from curvature_cases import filled

CONVS = [
    ((2, 7), lambda: nn.Conv1d(2, 3, 3)),
    ((4, 9), lambda: nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2)),
    ((2, 6, 5), lambda: nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 2))),
    ((4, 7, 6), lambda: nn.Conv2d(4, 4, (2, 3), dilation=(2, 1), groups=4, bias=False)),
    ((2, 5, 6), lambda: nn.Conv2d(2, 3, (2, 4), padding="same")),
    ((2, 5, 6), lambda: nn.Conv2d(2, 3, 3, padding="valid")),
    ((2, 5, 6), lambda: nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode="circular")),
    ((2, 5, 6), lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect")),
    ((2, 5, 6), lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="replicate", stride=3)),
    ((2, 4, 5, 6), lambda: nn.Conv3d(2, 4, (2, 3, 1), stride=(1, 2, 3), padding=(0, 1, 1), groups=2)),
]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(("shape", "make"), CONVS)
def test_patches_times_weight_is_the_convolution(shape, make):
    conv = filled(make())
    x = torch.randn(3, *shape, generator=generator(1), dtype=torch.float64)
    rows = patches(conv, x)
    out = torch.einsum("bpgd,god->bgop", rows, conv.weight.reshape(conv.groups, -1, rows.shape[3])).flatten(
        1, 2
    )
    if conv.bias is not None:
        out = out + conv.bias[:, None]
    torch.testing.assert_close(out, conv(x).flatten(2))


@pytest.mark.parametrize(("shape", "make"), CONVS)
def test_mean_patch_is_the_mean_of_the_patches(shape, make):
    conv = filled(make())
    x = torch.randn(3, *shape, generator=generator(1), dtype=torch.float64)
    torch.testing.assert_close(mean_patches(conv, x), patches(conv, x).mean(1))
