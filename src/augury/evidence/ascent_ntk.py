"""Steps up the bound for networks whose layers have no Kronecker factors: attention, modules of one's own.

The same calls as `Evidence`. Every step on the widths takes one random group of data and one random output, so there is
no pass over the data at all. The prior precision stays as given: a loose bound pays for a larger one by switching
the network off, so it cannot be learned from small groups.
"""

from collections.abc import Iterable, Mapping
from itertools import cycle, islice

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.evidence.ascent import some_of
from augury.evidence.likelihoods import LIKELIHOODS
from augury.evidence.ntk import NtkBound
from augury.models.modes import evaluating
from augury.models.orbit import OrbitAverage


class NtkEvidence:
    """The stochastic bound of a network in training, and the optimiser that climbs it."""

    def __init__(
        self,
        model: OrbitAverage,
        N: int,
        task: str = "classification",
        *,
        delta: float = 0.1,
        eta_rate: float = 0.1,
        eta_steps: int = 8,
        eta_images: int = 64,
        samples: int | None = None,
        batchnorm: str = "refuse",
    ) -> None:
        if not delta > 0:
            raise InputError(f"delta must be a positive prior precision; got {delta}.")
        self.model, self.N, self.samples, self.batchnorm = model, N, samples, batchnorm
        self.likelihood = LIKELIHOODS[task]()
        self.bound = NtkBound(model, self.likelihood)
        self.delta = torch.full((self.bound.n_delta,), delta, dtype=torch.float64)
        self.eta_steps, self.eta_images = eta_steps, eta_images
        self.eta = [p for p in model.transform.parameters() if p.requires_grad and p.numel()]
        self.noise = list(self.likelihood.parameters())
        self.eta_optimizer = torch.optim.Adam(self.eta or [nn.Parameter(torch.zeros(0))], lr=eta_rate)
        self.delta_optimizer = torch.optim.Adam(self.noise or [nn.Parameter(torch.zeros(0))], lr=eta_rate)

    @torch.no_grad()
    def add_prior_gradient(self) -> None:
        """Add the gradient of delta |theta|^2 / 2N to the weights' gradients."""
        for p in self.model.net.parameters():
            if p.grad is not None:
                p.grad.add_(p, alpha=float(self.delta[0]) / self.N)

    def step(self, batches: Iterable[tuple[Tensor, Tensor]], rng: torch.Generator) -> dict[str, float]:
        """Climb once: several steps on the widths (and on the noise of a regression), each from one group."""
        x, y = some_of(batches, self.eta_steps * self.eta_images)
        groups = list(zip(x.split(self.eta_images), y.split(self.eta_images), strict=True))
        learned, values = [*self.eta, *self.noise], []
        with evaluating(self.model.net, self.batchnorm):
            for group_x, group_y in islice(cycle(groups), self.eta_steps):
                value = self.bound.objective(group_x, group_y, self.delta, self.N, _seed(rng), self.samples)
                values.append(value.item())
                if not learned:
                    continue
                for p, g in zip(learned, torch.autograd.grad(value, learned), strict=True):
                    p.grad = -g
                self.eta_optimizer.step()
                self.delta_optimizer.step()
                self.model.transform.project_()
        return {"log_evidence": sum(values) / len(values), "delta": float(self.delta[0])}

    def value(self, batches: Iterable[tuple[Tensor, Tensor]], rng: torch.Generator) -> float:
        """Return the bound over all the data given, in groups, one output for each."""
        start, n = _seed(rng), self.eta_images
        groups = (part for x, y in batches for part in zip(x.split(n), y.split(n), strict=True))
        with evaluating(self.model.net, self.batchnorm), torch.no_grad():
            bound = self.bound.lower_bound(
                groups, self.delta, lambda k: start + k, self.samples, every_output=False
            )
        return float(bound)

    def gradient(self, x: Float[Tensor, "B ..."], y: Tensor, seed: int) -> list[Tensor]:
        """Return the gradient of the bound in the widths from a sample of the data, scaled up to N."""
        groups = zip(x.split(self.eta_images), y.split(self.eta_images), strict=True)
        with evaluating(self.model.net, self.batchnorm):
            grads = self.bound.gradient(groups, self.delta, lambda k: seed + k, self.samples)
        return [g * (self.N / len(x)) for g in grads]

    def state(self) -> dict[str, Tensor]:
        """Return nothing: the prior precision does not change."""
        return {}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take nothing back."""


def _seed(rng: torch.Generator) -> int:
    return int(torch.randint(2**61, (), generator=rng, device=rng.device))
