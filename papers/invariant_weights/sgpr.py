r"""The baseline of Table 2: sparse Gaussian process regression on one-hot labels (Titsias, 2009), by gpytorch.

    y_c = f_c(x) + noise,   f_c ~ GP(m_c, s^2 exp(-|x - x'|^2 / 2 l^2)),   the greatest f_c is the class

All classes share kernel, noise and M inducing inputs; each has a mean of its own. With Q = K_xu K_uu^-1 K_ux the bound

    sum_c log N(y_c; m_c, Q + sigma^2 I) - C tr(K - Q) / (2 sigma^2)

is raised by Adam. It is about real-valued targets, so it cannot be compared with the bound of a classifier.
"""

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from augury.core.errors import InputError

CHUNK = 1000
"""Test inputs at a time."""


@dataclass(frozen=True)
class Sgpr:
    """A fitted baseline."""

    predictions: Float[Tensor, "M C"]  # mean of every f_c at the test inputs
    bound: float  # over all training data, in nats
    bounds: list[float]  # the same before every step
    length_scale: float
    variance: float
    noise: float
    mean: Float[Tensor, " C"]  # m_c
    inducing: Float[Tensor, "u D"]  # where the inducing inputs ended
    seconds: float  # without loading gpytorch


def sgpr(
    x: Float[Tensor, "N ..."],
    y: Int[Tensor, " N"],
    x_test: Float[Tensor, "M ..."],
    rng: torch.Generator,
    *,
    inducing: int = 200,
    steps: int = 100,
    rate: float = 0.05,
) -> Sgpr:
    """Fit the baseline, and predict."""
    import_gpytorch()  # importing takes seconds, which are not training
    started = time.perf_counter()
    x, x_test = x.flatten(1), x_test.flatten(1)
    start = torch.randperm(len(x), generator=rng, device=rng.device)[:inducing]
    model = _Model(x, F.one_hot(y).to(x), x[start.to(x.device)].clone())
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    bounds = []
    for _ in range(steps):
        value = model.bound()
        bounds.append(value.item())
        optimizer.zero_grad()
        (-value / len(x)).backward()
        optimizer.step()
    with torch.no_grad():
        bound, predictions = float(model.bound()), model.predict(x_test)
    return Sgpr(predictions, bound, bounds, *model.values(), time.perf_counter() - started)


class _Model(nn.Module):
    """Kernel, noise and means; one decomposition of the covariance serves all outputs."""

    def __init__(self, x: Float[Tensor, "N D"], targets: Float[Tensor, "N C"], inducing: Tensor) -> None:
        super().__init__()
        gpytorch = import_gpytorch()
        self.x, self.targets = x, targets
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        rbf = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
        rbf.base_kernel.lengthscale = typical_distance(x)
        self.kernel = gpytorch.kernels.InducingPointKernel(rbf, inducing, self.likelihood)
        self.mean = nn.Parameter(targets.mean(0))
        self.to(x)

    def _covariance(self) -> Any:
        """Return Q + sigma^2 I; in training mode, or gpytorch corrects its diagonal."""
        return self.kernel.train()(self.x).evaluate_kernel().add_diagonal(self.likelihood.noise)

    def bound(self) -> Float[Tensor, ""]:
        """Return Titsias' bound."""
        N, C = self.targets.shape
        quadratic, logdet = self._covariance().inv_quad_logdet(self.targets - self.mean, logdet=True)
        trace: Tensor = next(iter(self.kernel.added_loss_terms())).loss()  # -tr(K - Q) / (2 sigma^2)
        value: Tensor = -(quadratic + C * (logdet + N * math.log(2 * math.pi))) / 2 + C * trace
        return value

    def predict(self, x: Float[Tensor, "M D"]) -> Float[Tensor, "M C"]:
        """Return the posterior means."""
        weights = self._covariance().solve(self.targets - self.mean)
        self.kernel.eval()
        return torch.cat([self.kernel(part, self.x) @ weights for part in x.split(CHUNK)]) + self.mean

    def values(self) -> tuple[float, float, float, Tensor, Tensor]:
        """Return length scale, variance, noise, means and inducing inputs."""
        rbf = self.kernel.base_kernel
        numbers = (rbf.base_kernel.lengthscale, rbf.outputscale, self.likelihood.noise)
        a, b, c = (float(n.detach()) for n in numbers)
        return a, b, c, self.mean.detach(), self.kernel.inducing_points.detach()


def typical_distance(x: Float[Tensor, "N D"], most: int = 500) -> float:
    """Return the median distance between two inputs, where the length scale starts."""
    return float(torch.pdist(x[:most]).median()) or 1.0


def import_gpytorch() -> Any:
    """Import gpytorch, or raise an error that names the extra."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # what it imports uses torch.jit
            import gpytorch
    except ImportError as error:
        raise InputError(
            "gpytorch must be installed for the SGPR baseline; it is not. In the checkout: pip install -e '.[papers]'; "
            "or leave the baseline out: --only method=... with the other methods."
        ) from error
    return gpytorch
