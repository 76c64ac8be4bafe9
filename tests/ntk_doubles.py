"""Small problems for the tests of the stochastic bound."""

import torch

from augury.core.rng import generator
from augury.evidence.laplace import Laplace
from augury.evidence.likelihoods import Categorical, Gaussian
from augury.models.orbit import OrbitAverage
from augury.models.small import MLP
from augury.transforms.affine2d import AffineCoordinates

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


def groups(x, y, size):
    return list(zip(x.split(size), y.split(size), strict=True))


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


def central_difference(value, parameter, h=1e-5):
    out = torch.zeros_like(parameter)
    flat, data = out.view(-1), parameter.data.view(-1)
    for k in range(len(data)):
        start = float(data[k])
        ends = []
        for sign in (1, -1):
            data[k] = start + sign * h
            ends.append(float(value().detach()))
        data[k] = start
        flat[k] = (ends[0] - ends[1]) / (2 * h)
    return out
