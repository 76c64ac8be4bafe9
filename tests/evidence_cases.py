"""Small models with widths, data and batches for the evidence tests, all in float64; then those of the NTK bound."""

import math

import torch
from torch import nn

from augury.core.rng import generator
from augury.core.scalars import ScalarBias, ScalarScale
from augury.evidence.laplace import Laplace
from augury.evidence.likelihoods import Categorical, Gaussian
from augury.models.orbit import OrbitAverage
from augury.models.small import MLP
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from curvature_cases import filled


def _points(sampling):
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
    return net, AffineCoordinates(["rotation", "scale_x"], sampling), (2,)


def _images(sampling):
    net = nn.Sequential(
        ScalarBias(), nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Tanh(),
        nn.Conv2d(4, 2, 2, stride=2, groups=2), ScalarScale(), nn.BatchNorm2d(2), nn.Tanh(),
        nn.Flatten(), nn.LayerNorm(8), nn.Linear(8, 3),
    )  # fmt: skip
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


WIDTHS = torch.tensor([0.2, 0.1, 0.7, 0.15, 0.25, 0.1], dtype=torch.float64)
N, C = 12, 3
DELTA = torch.tensor([0.7], dtype=torch.float64)


def averaged(net, transform, S=4):
    transform.double()
    with torch.no_grad():
        transform.eta.copy_(WIDTHS)
    return OrbitAverage(net.double(), transform, samples=S)


def on_points(net=None, S=4):
    return averaged(net or MLP([2, 5, C], generator(0)), AffineCoordinates("affine"), S)


def images(n=N):
    return torch.rand(n, 1, 6, 6, generator=generator(1), dtype=torch.float64)


def points(n=N):
    return torch.randn(n, 2, generator=generator(1), dtype=torch.float64)


def labels(n=N):
    return torch.arange(n) % C


def targets(n=N):
    return torch.randn(n, C, generator=generator(2), dtype=torch.float64)


def problem(task):
    return (Categorical(), labels()) if task == "classification" else (Gaussian(0.3).double(), targets())


def on_a_grid(S=4):
    """The same noise for every datum and every call, so that partitions of the data differ in nothing else."""
    transform = AffineCoordinates("rotation", sampling="grid")
    model = OrbitAverage(MLP([2, 5, C], generator(0)).double(), transform.double(), samples=S)
    transform.set_widths({"rotation": 40.0})
    return model


def full_evidence(model, likelihood, x, y, delta, prior, seed=7):
    laplace = Laplace(model, likelihood, structure="full", output="ggn", prior=prior)
    fit = laplace.fit([(x, y)], lambda _: seed)
    gradient = laplace.gradient([(x, y)], laplace.preconditioner(fit, delta), lambda _: seed)
    return laplace.log_evidence(fit, delta), gradient
