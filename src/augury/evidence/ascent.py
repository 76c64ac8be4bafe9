"""Steps up the evidence: what a training loop calls once in a while to learn widths, prior and noise.

    model = OrbitAverage(net, Affine2d((28, 28)))
    evidence = Evidence(model, N=len(data))
    for epoch in range(epochs):
        ...                                  # train net as always; add evidence.penalty() to the mean loss
        evidence.step(loader, rng)           # the widths move

One step (paper A, section 4.3): factors from a sample of the data, one decomposition; a few cheap steps on delta and
sigma in closed form; several mini-batch steps on eta that share the factors.

Steps up the bound for networks whose layers have no Kronecker factors: attention, modules of one's own.

The same calls as `Evidence`. Every step on the widths takes one random group of data and one random output, so there is
no pass over the data at all. The prior precision stays as given: a loose bound pays for a larger one by switching
the network off, so it cannot be learned from small groups.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle, islice

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.curvature.tape import rows_per_pass
from augury.evidence.laplace import Fit, Laplace
from augury.evidence.likelihoods import LIKELIHOODS
from augury.evidence.ntk import NtkBound
from augury.models.batchnorm import evaluating
from augury.models.orbit import OrbitAverage


class Evidence:
    """The evidence of a network in training, and the optimisers that climb it.

    Parameters
    ----------
    model
        The network with its transformation.
    N
        Size of the training set.
    task
        "classification" or "regression".
    structure, output, prior, positions, only
        As `Laplace` takes them.
    delta
        Prior precision at the start.
    delta_rate, delta_steps
        Adam's rate for log delta and log sigma^2, and steps in each call.
    eta_rate, eta_steps
        Adam's rate for the widths, and mini-batch steps in each call.
    images
        Most data for the factors of one call; fewer are scaled up.
    eta_images
        Data for each step on the widths.
    samples
        Views per input; the model's own unless told.
    chunk
        Views in one pass through the network, which bounds the memory; by the network's activations unless told.
    batchnorm
        "refuse", or "evaluate" to use the running statistics of BatchNorm layers.
    """

    def __init__(
        self,
        model: OrbitAverage,
        N: int,
        task: str = "classification",
        *,
        structure: str = "kron",
        output: str = "mc",
        prior: str = "scalar",
        positions: str = "reduce",
        only: Sequence[str] | None = None,
        delta: float = 0.1,
        delta_rate: float = 0.05,
        delta_steps: int = 10,
        eta_rate: float = 0.1,
        eta_steps: int = 8,
        images: int = 1000,
        eta_images: int = 125,
        samples: int | None = None,
        chunk: int | None = None,
        batchnorm: str = "refuse",
    ) -> None:
        if not delta > 0:
            raise InputError(f"delta must be a positive prior precision; got {delta}.")
        self.model, self.N, self.samples, self.batchnorm = model, N, samples, batchnorm
        self.likelihood = LIKELIHOODS[task]()
        self.laplace = Laplace(model, self.likelihood, structure, output, prior, positions, only)
        self.log_delta = nn.Parameter(
            torch.full((self.laplace.structure.n_delta,), delta, dtype=torch.float64).log()
        )
        self.images, self.eta_images, self.eta_steps, self.delta_steps = (
            images,
            eta_images,
            eta_steps,
            delta_steps,
        )
        self.chunk = chunk
        self.eta = [p for p in model.transform.parameters() if p.requires_grad and p.numel()]
        self.eta_optimizer = torch.optim.Adam(self.eta or [nn.Parameter(torch.zeros(0))], lr=eta_rate)
        closed_form = [self.log_delta, *self.likelihood.parameters()]
        self.delta_optimizer = torch.optim.Adam(closed_form, lr=delta_rate)

    @property
    def delta(self) -> Float[Tensor, " L"]:
        """The prior precisions of now, without a graph."""
        return self.log_delta.detach().exp()

    def penalty(self) -> Float[Tensor, ""]:
        """Return -log p(theta) / N up to a constant: add it to the mean of the negative log-likelihood.

        Returns
        -------
        Tensor
            sum of delta |theta|^2 / 2N, differentiable in the weights.
        """
        structure = self.laplace.structure
        deltas = structure.delta_of_blocks(self.delta)
        pairs = zip(structure.blocks, deltas, strict=True)
        return torch.stack([d * p.square().sum() for b, d in pairs for p in b.parameters]).sum() / (
            2 * self.N
        )

    @torch.no_grad()
    def add_prior_gradient(self) -> None:
        """Add the gradient of `penalty` to the weights' gradients: the same, without a graph."""
        structure = self.laplace.structure
        for block, d in zip(structure.blocks, structure.delta_of_blocks(self.delta), strict=True):
            for p in block.parameters:
                if p.grad is not None:
                    p.grad.add_(p, alpha=float(d) / self.N)

    def step(self, batches: Iterable[tuple[Tensor, Tensor]], rng: torch.Generator) -> dict[str, float]:
        """Climb once: factors, prior and noise, widths.

        Parameters
        ----------
        batches
            The training data in random order; only as many batches are taken as are needed.
        rng
            Where the noise comes from.

        Returns
        -------
        dict
            The log evidence before the widths moved, and the mean prior precision.
        """
        x, y = some_of(batches, self.images)
        with evaluating(self.model.net, self.batchnorm):
            fit = self._fit(x, y, rng)
            for _ in range(self.delta_steps):
                self.delta_optimizer.zero_grad()
                (-self.laplace.log_evidence(fit, self.log_delta.exp())).backward()
                self.delta_optimizer.step()
            with torch.no_grad():
                log_evidence = float(self.laplace.log_evidence(fit, self.delta))
            self._climb_eta(x, y, fit, rng)
        return {"log_evidence": log_evidence, "delta": float(self.delta.mean())}

    def value(self, batches: Iterable[tuple[Tensor, Tensor]], rng: torch.Generator) -> float:
        """Return the log evidence over all the data given, nothing moved.

        Parameters
        ----------
        batches
            The training data.
        rng
            Where the noise comes from.

        Returns
        -------
        float
            log p(D).
        """
        parts = (part for x, y in batches for part in self._chunks(x, y))
        with evaluating(self.model.net, self.batchnorm):
            fit = self.laplace.fit(parts, _seeds(rng), self.samples, gradients=False)
            with torch.no_grad():
                return float(self.laplace.log_evidence(fit, self.delta))

    def gradient(self, x: Float[Tensor, "B ..."], y: Tensor, seed: int) -> list[Tensor]:
        """Return the gradient of the evidence in the widths from a sample of the data, both passes, one noise.

        Parameters
        ----------
        x, y
            A sample; it is scaled up to N.
        seed
            Seed of the noise: equal seeds give comparable gradients.

        Returns
        -------
        list
            One gradient per parameter of the transformation.
        """
        with evaluating(self.model.net, self.batchnorm):
            fit = self.laplace.fit(self._chunks(x, y), lambda k: seed + k, self.samples, self.N)
            frozen = self.laplace.preconditioner(fit, self.delta)
            grads = self.laplace.gradient(self._chunks(x, y), frozen, lambda k: seed + k, self.samples)
        return [g * (self.N / len(x)) for g in grads]

    def state(self) -> dict[str, Tensor]:
        """Return what changes here and belongs in a checkpoint, the optimisers and the likelihood aside.

        Returns
        -------
        dict
            log delta.
        """
        return {"log_delta": self.log_delta.detach().clone()}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state` gave.

        Parameters
        ----------
        state
            Tensors by name.
        """
        self.log_delta.copy_(state["log_delta"])

    def _chunks(self, x: Tensor, y: Tensor) -> Iterable[tuple[Tensor, Tensor]]:
        self.chunk = self.chunk or rows_per_pass(self.model.net, x[:1])
        images = max(1, self.chunk // (self.samples or self.model.S_train))
        return zip(x.split(images), y.split(images), strict=True)

    def _fit(self, x: Tensor, y: Tensor, rng: torch.Generator) -> Fit:
        return self.laplace.fit(self._chunks(x, y), _seeds(rng), self.samples, self.N)

    def _climb_eta(self, x: Tensor, y: Tensor, fit: Fit, rng: torch.Generator) -> None:
        if not self.eta:
            return
        frozen = self.laplace.preconditioner(fit, self.delta)
        start = [p.detach().clone() for p in self.eta]
        parts = zip(x.split(self.eta_images), y.split(self.eta_images), strict=True)
        for part_x, part_y in islice(cycle(list(parts)), self.eta_steps):
            grads = self.laplace.gradient(self._chunks(part_x, part_y), frozen, _seeds(rng), self.samples)
            for p, g in zip(self.eta, grads, strict=True):
                p.grad = -g * (self.N / len(part_x))
            self.eta_optimizer.step()
            self._stay_near(start)
            self.model.transform.project_()

    @torch.no_grad()
    def _stay_near(self, start: list[Tensor]) -> None:
        for p, s in zip(self.eta, start, strict=True):
            p.copy_(p.clamp(s - TRUST, s + TRUST))


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


AnyEvidence = Evidence | NtkEvidence


TRUST = 0.8
"""How far a width may go on one set of factors: beyond, they no longer describe the network's curvature."""


def some_of(batches: Iterable[tuple[Tensor, Tensor]], n: int) -> tuple[Tensor, Tensor]:
    """Return the first n data, or all where they are fewer."""
    taken: list[tuple[Tensor, Tensor]] = []
    for pair in batches:
        taken.append(pair)
        if sum(len(x) for x, _ in taken) >= n:
            break
    return torch.cat([x for x, _ in taken])[:n], torch.cat([y for _, y in taken])[:n]


def _seeds(rng: torch.Generator) -> Callable[[int], int]:
    start = int(torch.randint(2**61, (), generator=rng, device=rng.device))
    return lambda k: start + k


def _seed(rng: torch.Generator) -> int:
    return int(torch.randint(2**61, (), generator=rng, device=rng.device))
