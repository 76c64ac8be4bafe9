"""Steps up the evidence: what a training loop calls from time to time to learn widths, prior and noise.

    model = OrbitAverage(net, Affine2d((28, 28)))
    evidence = Evidence(model, N=len(data))
    for epoch in range(epochs):
        ...                                  # train net as always; add evidence.penalty() to the mean loss
        evidence.step(loader, rng)           # the widths move

One step (paper A, section 4.3): factors from a sample of the data, one decomposition; a few cheap steps on delta and
sigma in closed form; several mini-batch steps on eta that share the factors.

`NtkEvidence` has the same calls for networks whose layers have no Kronecker factors (attention, modules of one's own).
Every step on the widths takes one random group of data and one random output: there is no pass over the data. The prior
precision stays as given: a loose bound pays for a larger one by switching the network off, so it cannot be learned.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice
from math import isfinite
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.config.learn import EvidenceConfig
from augury.config.synonyms import synonyms
from augury.core.world import World
from augury.curvature.tape import cut_off, rows_per_pass
from augury.evidence.climbing import Climber, Data, all_pairs, seed_of, seeds_of, some_of
from augury.evidence.laplace import Fit, Laplace
from augury.evidence.likelihoods import guess
from augury.evidence.ntk import NtkBound
from augury.models.batchnorm import evaluating
from augury.models.orbit import OrbitAverage

TRUST = 0.8
"""How far a width may go on one set of factors: beyond, they no longer describe the network's curvature."""
UNSURE = 0.13
"""The same, as a share of its range, while a classifier's evidence is below that of a guess: on 1,000 photographs a
vertical shift ran to 13 of 32 pixels then and stayed there; with this it ends at 5 to 7 (CIFAR-10, seeds 20 and 31,
which chose it; at 0.1 a full rotation of 100 points ends at 112 degrees)."""


class Evidence(Climber):
    """The evidence of a network in training, and the optimisers that climb it.

    Parameters
    ----------
    model
        The network with its transformation.
    N
        Size of the training set.
    task
        "classification" or "regression".
    samples
        Views per input. Default: the model's `samples`.
    only
        Names of the layers to be Bayesian about. Default: all.
    chunk
        Views in one pass through the network, which bounds the memory. Default: by the network's activations.
    fabric
        A launched `lightning_fabric.Fabric`: its processes share the work. Each gives its own part of the data, as
        `fabric.setup_dataloaders` deals them, or all the same tensors or data set, and a generator of the same seed.
    settings
        Any field of `augury.config.learn.EvidenceConfig`, whose defaults are those of `augury.learn`:
        structure="kron", delta=0.1, evidence_images=300, eta_steps=8, ...
    """

    @synonyms
    def __init__(
        self,
        model: OrbitAverage,
        N: int,
        task: str = "classification",
        *,
        samples: int | None = None,
        only: Sequence[str] | None = None,
        chunk: int | None = None,
        fabric: Any = None,
        **settings: Any,
    ) -> None:
        super().__init__(model, N, task, samples, config := EvidenceConfig.of(**settings), fabric)
        self.chunk, output = chunk, config.curvature(N)
        self.laplace = Laplace(model, self.likelihood, config.structure, output, config.prior, config.positions, only)
        self.laplace.world = self.world
        self.log_delta = nn.Parameter(
            torch.full((self.laplace.structure.n_delta,), config.delta, dtype=torch.float64).log()
        )
        closed_form = [self.log_delta, *self.likelihood.parameters()]
        self.delta_optimizer = torch.optim.Adam(closed_form, lr=config.delta_rate)

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
        return torch.stack([d * p.square().sum() for b, d in pairs for p in b.parameters]).sum() / (2 * self.N)

    @torch.no_grad()
    def add_prior_gradient(self, share: float = 1.0) -> None:
        """Add the gradient of `penalty`, or a share of it, to the weights' gradients: the same, without a graph."""
        structure = self.laplace.structure
        for block, d in zip(structure.blocks, structure.delta_of_blocks(self.delta), strict=True):
            for p in block.parameters:
                if p.grad is not None:
                    p.grad.add_(p, alpha=share * float(d) / self.N)

    def step(self, batches: Data, rng: torch.Generator) -> dict[str, float]:
        """Climb once: factors, prior and noise, widths.

        Parameters
        ----------
        batches
            The training data: pairs (inputs, labels) batch by batch in random order, as a `DataLoader` gives them,
            of which only as many are taken as are needed; one pair of all; or a map-style `torch.utils.data.Dataset`.
        rng
            Where the noise comes from.

        Returns
        -------
        dict
            The log evidence before the widths moved, and the mean prior precision.
        """
        self._check_widths()
        x, y = some_of(all_pairs(self, batches, rng), self.settings.evidence_images)
        with evaluating(self.model.net, self.settings.batchnorm):
            fit = self._fit(x, y, rng)
            self._fit_prior(fit)
            with torch.no_grad():
                log_evidence = float(self.laplace.log_evidence(fit, self.delta))
            unsure = not y.is_floating_point() and log_evidence <= guess(y) * self.N / len(y)
            self._climb_eta(x, y, fit, rng, [UNSURE * r if unsure else TRUST for r in ranges_of(self)])
        self._leave_widths()
        return {"log_evidence": log_evidence, "delta": float(self.delta.mean())}

    def value(self, batches: Data, rng: torch.Generator) -> float:
        """Return the log evidence over all the data given, nothing moved.

        Parameters
        ----------
        batches
            The training data, as for `step`.
        rng
            Where the noise comes from.

        Returns
        -------
        float
            log p(D).
        """
        parts = (part for x, y in all_pairs(self, batches) for part in self._chunks(x, y))
        with evaluating(self.model.net, self.settings.batchnorm):
            fit = self.laplace.fit(parts, seeds_of(rng), self.samples, gradients=False)
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
        with evaluating(self.model.net, self.settings.batchnorm):
            fit = self.laplace.fit(self._chunks(x, y), lambda k: seed + k, self.samples, self.N)
            frozen = self.laplace.preconditioner(fit, self.delta)
            grads = self.laplace.gradient(self._chunks(x, y), frozen, lambda k: seed + k, self.samples)
        return [g * (self.N / len(x)) for g in grads]

    def state_dict(self) -> dict[str, Any]:
        return {"log_delta": self.log_delta.detach().clone(), **super().state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        with torch.no_grad():
            self.log_delta.copy_(state["log_delta"])

    def _chunks(self, x: Tensor, y: Tensor) -> Iterable[tuple[Tensor, Tensor]]:
        self.chunk = self.chunk or rows_per_pass(self.model.net, x[:1])
        images = max(1, self.chunk // (self.samples or self.model.samples))
        return zip(x.split(images), y.split(images), strict=True)

    def _fit(self, x: Tensor, y: Tensor, rng: torch.Generator) -> Fit:
        return self.laplace.fit(self._chunks(x, y), seeds_of(rng), self.samples, self.N)

    def _fit_prior(self, fit: Fit) -> None:
        """Move prior precision and noise up the evidence, closed form in the eigenvalues; by default to its maximum.

        A precision that lags behind its maximum makes weights look dear, and wide orbits look good: on photographs the
        evidence then begins at -5.5 nats per image instead of -2.7, and widths run to their bounds.
        """

        def minus() -> float:
            optimizer.zero_grad()
            value = -self.laplace.log_evidence(fit, self.log_delta.exp()) / self.N
            value.backward()
            return value.item()

        optimizer: torch.optim.Optimizer = self.delta_optimizer
        steps = self.settings.delta_steps
        if self.settings.delta_rate == 0:
            parameters = [self.log_delta, *self.likelihood.parameters()]
            optimizer = torch.optim.LBFGS(parameters, max_iter=20, line_search_fn="strong_wolfe")
            steps = min(1, steps)
        for _ in range(steps):
            optimizer.step(minus)

    def _climb_eta(self, x: Tensor, y: Tensor, fit: Fit, rng: torch.Generator, trust: Sequence[Any]) -> None:
        if not self.eta:
            return
        frozen = self.laplace.preconditioner(fit, self.delta, held=self.resting)
        start = [p.detach().clone() for p in self.eta]
        n, steps = self.settings.eta_images, self.settings.eta_steps
        parts = list(zip(x.split(n), y.split(n), strict=True))
        for part_x, part_y in islice(cycle(parts), steps):
            grads = self.laplace.gradient(self._chunks(part_x, part_y), frozen, seeds_of(rng), self.samples)
            for p, g in zip(self.eta, grads, strict=True):
                p.grad = -g * (self.N / len(part_x))
            self.eta_optimizer.step()
            with torch.no_grad():
                for p, s, far in zip(self.eta, start, trust, strict=True):
                    p.copy_(p.clamp(s - far, s + far))
            self.model.transform.project_()


def ranges_of(evidence: Evidence) -> list[Tensor]:
    """Return how far each width can go at all: its upper bound, or 1 where it has none."""
    found = {}
    for part in evidence.model.transform.modules():
        specs = getattr(part, "specs", ())
        for p in part.parameters(recurse=False):
            upper = [spec.upper if isfinite(spec.upper) else 1.0 for spec in specs] if len(specs) == len(p) else [1.0]
            found[p] = p.detach().new_tensor(upper).view(-1, *[1] * (p.ndim - 1))
    return [found[p] for p in evidence.eta]


class NtkEvidence(Climber):
    """The stochastic bound of a network in training, and the optimiser that climbs it."""

    @synonyms
    def __init__(
        self,
        model: OrbitAverage,
        N: int,
        task: str = "classification",
        *,
        samples: int | None = None,
        fabric: Any = None,
        **settings: Any,
    ) -> None:
        super().__init__(model, N, task, samples, config := EvidenceConfig.of(**settings), fabric)
        self.bound = NtkBound(model, self.likelihood)
        self.delta = torch.full((self.bound.n_delta,), config.delta, dtype=torch.float64)
        self.noise = list(self.likelihood.parameters())
        nothing = [nn.Parameter(torch.zeros(0))]
        self.delta_optimizer = torch.optim.Adam(self.noise or nothing, lr=config.eta_rate)

    @torch.no_grad()
    def add_prior_gradient(self, share: float = 1.0) -> None:
        """Add the gradient of delta |theta|^2 / 2N, or a share of it, to the weights' gradients."""
        for p in self.model.net.parameters():
            if p.grad is not None:
                p.grad.add_(p, alpha=share * float(self.delta[0]) / self.N)

    def step(self, batches: Data, rng: torch.Generator) -> dict[str, float]:
        """Climb once: several steps on the widths (and on the noise of a regression), each from one group."""
        self._check_widths()
        n, steps = self.settings.eta_images, self.settings.eta_steps
        x, y = some_of(all_pairs(self, batches, rng), n * steps)
        groups = list(zip(x.split(n), y.split(n), strict=True))
        learned, values = [*self.eta, *self.noise], []
        with evaluating(self.model.net, self.settings.batchnorm):
            for group_x, group_y in islice(cycle(groups), steps):
                value = self.bound.objective(group_x, group_y, self.delta, self.N, seed_of(rng), self.samples)
                values.append(value.item())
                if not learned:
                    continue
                grads = torch.autograd.grad(value, learned, allow_unused=True)
                if self.eta and all(g is None for g in grads[: len(self.eta)]):
                    raise cut_off()
                for p, g in zip(learned, grads, strict=True):
                    p.grad = None if g is None else -g
                self.eta_optimizer.step()
                self.delta_optimizer.step()
                self.model.transform.project_()
        self._leave_widths()
        return {"log_evidence": sum(values) / len(values), "delta": float(self.delta[0])}

    def value(self, batches: Data, rng: torch.Generator) -> float:
        """Return the bound over all the data given, in groups, one output for each."""
        start, n = seed_of(rng), self.settings.eta_images
        batched = all_pairs(self, batches)
        groups = (part for x, y in batched for part in zip(x.split(n), y.split(n), strict=True))
        with evaluating(self.model.net, self.settings.batchnorm), torch.no_grad():
            bound = self.bound.lower_bound(groups, self.delta, lambda k: start + k, self.samples, every_output=False)
        return float(bound)


AnyEvidence = Evidence | NtkEvidence


def join(evidence: AnyEvidence, world: World) -> None:
    """Let processes that all give the same data share the work."""
    evidence.world, evidence.scattered = world, False
    if isinstance(evidence, Evidence):
        evidence.laplace.world = world
