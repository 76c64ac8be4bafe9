"""Small models with widths, data and batches for the evidence tests, all in float64."""

import math

import torch
from torch import nn

from augury.core.rng import generator
from augury.core.scalars import ScalarBias, ScalarScale
from augury.evidence.likelihoods import Categorical, Gaussian
from augury.models.orbit import OrbitAverage
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from curvature_cases import filled


def _points(sampling):
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
    return net, AffineCoordinates(["rotation", "scale_x"], sampling), (2,)


def _images(sampling):
    net = nn.Sequential(
        ScalarBias(),
        nn.Conv2d(1, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.Tanh(),
        nn.Conv2d(4, 2, 2, stride=2, groups=2),
        ScalarScale(),
        nn.BatchNorm2d(2),
        nn.Tanh(),
        nn.Flatten(),
        nn.LayerNorm(8),
        nn.Linear(8, 3),
    )
    return net, Affine2d((5, 4), ["rotation", "translate_x"], sampling=sampling), (1, 5, 4)


MODELS = {"points": _points, "images": _images}


def model(name="points", S=3, sampling="independent", eta=(0.6, 0.3)):
    """A model whose widths are not zero, and the shape of its inputs."""
    net, transform, shape = MODELS[name](sampling)
    transform = transform.double()
    with torch.no_grad():
        transform.eta.copy_(torch.tensor(eta))
    return OrbitAverage(filled(net, size=0.9), transform, samples=S), shape


def data(shape, regression=False, N=7):
    x = torch.randn(N, *shape, generator=generator(3), dtype=torch.float64)
    numbers = torch.randn(N, 3, generator=generator(4), dtype=torch.float64)
    return x, numbers if regression else numbers.argmax(1)


def batches(x, y, size):
    return list(zip(x.split(size), y.split(size), strict=True))


def likelihood(regression, sigma2=0.4):
    if not regression:
        return Categorical()
    gaussian = Gaussian().double()
    with torch.no_grad():
        gaussian.log_sigma2.fill_(math.log(sigma2))  # all its digits
    return gaussian


def precisions(laplace, seed=8):
    return torch.rand(laplace.structure.n_delta, generator=generator(seed), dtype=torch.float64) + 0.2


def seeds(k):
    return 11 + k
