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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from augury.config.learn import EvidenceConfig
from augury.config.synonyms import synonyms
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.curvature.tape import rows_per_pass
from augury.evidence.laplace import Fit, Laplace
from augury.evidence.likelihoods import LIKELIHOODS
from augury.evidence.ntk import NtkBound
from augury.models.batchnorm import evaluating
from augury.models.orbit import OrbitAverage

TRUST = 0.8
"""How far a width may go on one set of factors: beyond, they no longer describe the network's curvature."""

BATCH = 100
"""Data in a batch of a data set that is given without a loader."""

Data = Iterable[tuple[Tensor, Tensor]] | DataLoader[Any] | Dataset[Any]
"""Training data: pairs (inputs, labels) batch by batch, or a map-style data set of such pairs."""


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
    samples
        Views per input. Default: the model's `samples`.
    only
        Names of the layers to be Bayesian about. Default: all.
    chunk
        Views in one pass through the network, which bounds the memory. Default: by the network's activations.
    settings
        Any field of `augury.config.learn.EvidenceConfig`, whose defaults are those of `augury.learn`:
        structure="kron", delta=0.1, evidence_images=500, eta_steps=8, ...
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
        **settings: Any,
    ) -> None:
        self.settings = config = EvidenceConfig.of(**settings)
        self.model, self.N, self.samples, self.chunk = model, N, samples, chunk
        with evaluating(model.net, config.batchnorm):  # refuses BatchNorm now, not after some epochs
            pass
        self.likelihood = LIKELIHOODS[task]()
        output = config.curvature(N)
        self.laplace = Laplace(
            model, self.likelihood, config.structure, output, config.prior, config.positions, only
        )
        self.log_delta = nn.Parameter(
            torch.full((self.laplace.structure.n_delta,), config.delta, dtype=torch.float64).log()
        )
        self.eta = [p for p in model.transform.parameters() if p.requires_grad and p.numel()]
        self.eta_optimizer = torch.optim.Adam(self.eta or [nn.Parameter(torch.zeros(0))], lr=config.eta_rate)
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

    def step(self, batches: Data, rng: torch.Generator) -> dict[str, float]:
        """Climb once: factors, prior and noise, widths.

        Parameters
        ----------
        batches
            The training data: pairs (inputs, labels) batch by batch in random order, as a `DataLoader` gives them,
            of which only as many are taken as are needed; or a map-style `torch.utils.data.Dataset`.
        rng
            Where the noise comes from.

        Returns
        -------
        dict
            The log evidence before the widths moved, and the mean prior precision.
        """
        x, y = some_of(_pairs(batches, self.model, rng), self.settings.evidence_images)
        with evaluating(self.model.net, self.settings.batchnorm):
            fit = self._fit(x, y, rng)
            self._fit_prior(fit)
            with torch.no_grad():
                log_evidence = float(self.laplace.log_evidence(fit, self.delta))
            self._climb_eta(x, y, fit, rng)
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
        parts = (part for x, y in _pairs(batches, self.model) for part in self._chunks(x, y))
        with evaluating(self.model.net, self.settings.batchnorm):
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
        with evaluating(self.model.net, self.settings.batchnorm):
            fit = self.laplace.fit(self._chunks(x, y), lambda k: seed + k, self.samples, self.N)
            frozen = self.laplace.preconditioner(fit, self.delta)
            grads = self.laplace.gradient(self._chunks(x, y), frozen, lambda k: seed + k, self.samples)
        return [g * (self.N / len(x)) for g in grads]

    def state_dict(self) -> dict[str, Any]:
        """Return prior precision, noise and optimisers; weights and widths are in the model's own state_dict.

        Returns
        -------
        dict
            What `load_state_dict` takes.
        """
        return {
            "log_delta": self.log_delta.detach().clone(),
            "likelihood": {name: value.clone() for name, value in self.likelihood.state_dict().items()},
            "eta_optimizer": self.eta_optimizer.state_dict(),
            "delta_optimizer": self.delta_optimizer.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned; with the model's state and the same noise, training resumes bit for bit.

        Parameters
        ----------
        state
            The dictionary.
        """
        with torch.no_grad():
            self.log_delta.copy_(state["log_delta"])
        self.likelihood.load_state_dict(state["likelihood"])
        self.eta_optimizer.load_state_dict(state["eta_optimizer"])
        self.delta_optimizer.load_state_dict(state["delta_optimizer"])

    def to(self, *args: Any, **kwargs: Any) -> "Evidence":
        """Move the model and the optimiser of its widths; prior precision and noise stay in float64 on the CPU.

        Parameters
        ----------
        args, kwargs
            As for `torch.nn.Module.to`: a device, a dtype, or both.

        Returns
        -------
        Evidence
            Itself.
        """
        self.model.to(*args, **kwargs)
        self.eta_optimizer.load_state_dict(self.eta_optimizer.state_dict())  # moves its state to the widths
        return self

    def _chunks(self, x: Tensor, y: Tensor) -> Iterable[tuple[Tensor, Tensor]]:
        self.chunk = self.chunk or rows_per_pass(self.model.net, x[:1])
        images = max(1, self.chunk // (self.samples or self.model.samples))
        return zip(x.split(images), y.split(images), strict=True)

    def _fit(self, x: Tensor, y: Tensor, rng: torch.Generator) -> Fit:
        return self.laplace.fit(self._chunks(x, y), _seeds(rng), self.samples, self.N)

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

    def _climb_eta(self, x: Tensor, y: Tensor, fit: Fit, rng: torch.Generator) -> None:
        if not self.eta:
            return
        frozen = self.laplace.preconditioner(fit, self.delta)
        start = [p.detach().clone() for p in self.eta]
        n, steps = self.settings.eta_images, self.settings.eta_steps
        parts = list(zip(x.split(n), y.split(n), strict=True))
        for part_x, part_y in islice(cycle(parts), steps):
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

    @synonyms
    def __init__(
        self,
        model: OrbitAverage,
        N: int,
        task: str = "classification",
        *,
        samples: int | None = None,
        **settings: Any,
    ) -> None:
        self.settings = config = EvidenceConfig.of(**settings)
        self.model, self.N, self.samples = model, N, samples
        with evaluating(model.net, config.batchnorm):
            pass
        self.likelihood = LIKELIHOODS[task]()
        self.bound = NtkBound(model, self.likelihood)
        self.delta = torch.full((self.bound.n_delta,), config.delta, dtype=torch.float64)
        self.eta = [p for p in model.transform.parameters() if p.requires_grad and p.numel()]
        self.noise = list(self.likelihood.parameters())
        nothing = [nn.Parameter(torch.zeros(0))]
        self.eta_optimizer = torch.optim.Adam(self.eta or nothing, lr=config.eta_rate)
        self.delta_optimizer = torch.optim.Adam(self.noise or nothing, lr=config.eta_rate)

    @torch.no_grad()
    def add_prior_gradient(self) -> None:
        """Add the gradient of delta |theta|^2 / 2N to the weights' gradients."""
        for p in self.model.net.parameters():
            if p.grad is not None:
                p.grad.add_(p, alpha=float(self.delta[0]) / self.N)

    def step(self, batches: Data, rng: torch.Generator) -> dict[str, float]:
        """Climb once: several steps on the widths (and on the noise of a regression), each from one group."""
        n, steps = self.settings.eta_images, self.settings.eta_steps
        x, y = some_of(_pairs(batches, self.model, rng), n * steps)
        groups = list(zip(x.split(n), y.split(n), strict=True))
        learned, values = [*self.eta, *self.noise], []
        with evaluating(self.model.net, self.settings.batchnorm):
            for group_x, group_y in islice(cycle(groups), steps):
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

    def value(self, batches: Data, rng: torch.Generator) -> float:
        """Return the bound over all the data given, in groups, one output for each."""
        start, n = _seed(rng), self.settings.eta_images
        pairs = _pairs(batches, self.model)
        groups = (part for x, y in pairs for part in zip(x.split(n), y.split(n), strict=True))
        with evaluating(self.model.net, self.settings.batchnorm), torch.no_grad():
            bound = self.bound.lower_bound(
                groups, self.delta, lambda k: start + k, self.samples, every_output=False
            )
        return float(bound)


AnyEvidence = Evidence | NtkEvidence


def some_of(batches: Iterable[tuple[Tensor, Tensor]], n: int) -> tuple[Tensor, Tensor]:
    """Return the first n data, or all where they are fewer."""
    taken: list[tuple[Tensor, Tensor]] = []
    for pair in batches:
        taken.append(pair)
        if sum(len(x) for x, _ in taken) >= n:
            break
    return torch.cat([x for x, _ in taken])[:n], torch.cat([y for _, y in taken])[:n]


def _pairs(
    data: Data, model: nn.Module, rng: torch.Generator | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Give batches of tensors on the model's device; a data set is shuffled if there is a generator."""
    if isinstance(data, Dataset):
        shuffle = rng is not None and not isinstance(data, IterableDataset)
        data = DataLoader(data, BATCH, shuffle=shuffle, generator=generator(_seed(rng)) if rng else None)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    for batch in data:
        pair = tuple(batch) if isinstance(batch, tuple | list) else ()
        if len(pair) != 2 or not all(isinstance(part, Tensor) for part in pair):
            raise InputError(
                f"a batch must be a pair (inputs, labels) of tensors; got {_described(batch)}. Make pairs of them: "
                f"((batch['x'], batch['y']) for batch in loader), or a collate_fn that does."
            )
        yield pair[0].to(device), pair[1].to(device)


def _described(batch: object) -> str:
    if isinstance(batch, Mapping):
        return f"a dictionary with {', '.join(map(str, batch))}"
    parts = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
    return f"{type(batch).__name__}{parts}"


def _seeds(rng: torch.Generator) -> Callable[[int], int]:
    start = int(torch.randint(2**61, (), generator=rng, device=rng.device))
    return lambda k: start + k


def _seed(rng: torch.Generator) -> int:
    return int(torch.randint(2**61, (), generator=rng, device=rng.device))
