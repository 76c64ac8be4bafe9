"""The differentiable Laplace marginal likelihood of an orbit-averaged network (paper A, Eqs. 9-16).

    log p(D | eta) = sum_n log p(y_n | f_hat(x_n)) + log p(theta) - 1/2 log|H / 2 pi|,     H = GGN of f_hat + delta

in two passes over the data whose memory is set by the batch:

    fit       statistics of every batch without a graph, summed; one decomposition; after it the log-determinant is
              a closed form in delta and in the observation noise, and so is the preconditioner d log|H| / dT;
    gradient  the statistics of a batch again, with a graph back to eta; their inner product with the preconditioner,
              the log-likelihood beside it; one backward pass.

Several mini-batch gradients may share one fit.

Steps that are only to find their way (`held`) go without the second derivatives that dG takes. Of the statistics A, of
a layer's inputs, and G, of the gradients g = J^T R r in its outputs, they follow A, and of G what Lambda = R R^T does,
as if tr Lambda were a factor of the whole curvature:

    d log|H| = <d log|H| / dA, dA> + gamma d log tr Lambda,      gamma = d log|H| / d log Lambda = tr (H + P)^-1 H,

the number of weights that the data determine. Left out are how J moves, which is nothing where activations are ReLU,
and that Lambda of some data, or in some directions, weighs more than that of others.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.rng import Stream, generator
from augury.core.world import ALONE, World
from augury.curvature.dense import Diag, Full
from augury.curvature.joint import joint_kernel, rows_of
from augury.curvature.kron import Kron
from augury.curvature.structure import Statistics, Structure, added, inner, over
from augury.curvature.tape import covered_layers, cut_off, record
from augury.evidence.likelihoods import EXPECTED, OUTPUTS, Likelihood
from augury.models.orbit import OrbitAverage

TRACE = "tr Lambda"
"""In a preconditioner of steps that hold J: what the trace is multiplied by."""
TINY = 1e-30
STRUCTURES: dict[str, type[Structure]] = {"kron": Kron, "diag": Diag, "full": Full}
Batches = Iterable[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Fit:
    """The result of one pass over the data; everything after it is closed form."""

    spectrum: Any  # the decomposed curvature
    log_likelihood: float  # sum_n log p(y_n | f_hat(x_n)) at the noise variance of the fit
    residual: float
    """Sum of squared residuals (regression; else 0): the noise is learned from it without another pass."""
    numbers: float  # number of labels, or of target numbers
    trace: float = 0.0  # sum_n tr Lambda_n for unit noise


class Laplace:
    """The evidence of an orbit-averaged network under a Gaussian prior.

    Parameters
    ----------
    model
        The network with its transformation.
    likelihood
        Categorical or Gaussian.
    structure
        Structure of the curvature: "kron", "diag" or "full".
    output
        Curvature in the outputs: "mc" (one random column), "ggn" (exact), "label" or "ef".
    prior
        Prior precision shared by all ("scalar"), by a layer ("layer") or by a parameter tensor ("tensor").
    positions
        Positions of a convolution: "reduce" or "expand".
    only
        Names of the layers with a posterior (default: all); the others are constants.
    """

    world: World = ALONE
    """The processes that share every batch; all of them get the same batches and the same results."""

    def __init__(
        self,
        model: OrbitAverage,
        likelihood: Likelihood,
        structure: str = "kron",
        output: str = "mc",
        prior: str = "scalar",
        positions: str = "reduce",
        only: Sequence[str] | None = None,
    ) -> None:
        self.model, self.likelihood = model, likelihood
        self.output = choose("output", output, OUTPUTS)
        make = STRUCTURES[choose("structure", structure, STRUCTURES)]
        self.structure: Structure = make(covered_layers(model.net, only), prior, positions)

    def fit(
        self,
        batches: Batches,
        seeds: Callable[[int], int],
        S: int | None = None,
        N: int | None = None,
        gradients: bool = True,
    ) -> Fit:
        """Pass over the data once, without a graph to eta.

        Parameters
        ----------
        batches
            Inputs and labels, batch by batch.
        seeds
            Seed of the noise of batch k; the same seeds in `gradient` give the exact gradient of the same estimate.
        S
            Views per input (default: the model's).
        N
            Size of the whole training set, if the batches are a sample of it: every sum is scaled up.
        gradients
            Whether `preconditioner` will be called; the value and its gradient in delta are cheaper without.

        Returns
        -------
        Fit
            The decomposed curvature and the log-likelihood.
        """
        totals: Statistics = {}
        sums, seen, numbers = [0.0, 0.0, 0.0], 0, 0
        for k, (x, y) in enumerate(batches):
            statistics, *parts = self._sums(x, y, seeds(k), S)
            totals, sums = added(totals, statistics), [a + b for a, b in zip(sums, parts, strict=True)]
            seen, numbers = seen + len(x), numbers + y.numel()
        if not seen:
            raise InputError("the evidence needs data: no batch came. An iterator can be passed over only once.")
        r = 1.0 if N is None else N / seen
        log_likelihood, residual, trace = (r * total for total in self.world.sums(sums))
        with torch.no_grad():
            scaled = {name: T * r for name, T in over(totals, self.world).items()}
            spectrum = self.structure.decompose(scaled, gradients, self.world)
        return Fit(spectrum, log_likelihood, residual, numbers * r, trace)

    def log_evidence(self, fit: Fit, delta: Float[Tensor, " L"]) -> Float[Tensor, ""]:
        """Return the log marginal likelihood of Eq. 9, differentiable in delta and in the observation noise."""
        scale = self.likelihood.scale(self.output)
        logdet = self.structure.logdet(fit.spectrum, delta, scale.to(delta))
        log_likelihood = self.likelihood.from_sums(fit.log_likelihood, fit.residual, fit.numbers)
        return log_likelihood.to(delta) + self.structure.log_prior(delta) - logdet / 2

    def kernel(
        self, batches: Batches, seeds: Callable[[int], int], S: int, delta: Float[Tensor, " L"]
    ) -> Float[Tensor, "m B m B"]:
        """Return K with log|H| - log|P| = log|I + K| for these data, all layers at once; "trio" for the columns."""
        blocks = zip(self.structure.blocks, self.structure.delta_of_blocks(delta), strict=True)
        precision = {id(p): float(d) for block, d in blocks for p in block.parameters}
        parts = []
        for k, (x, y) in enumerate(batches):
            rng = generator(seeds(k), x.device)
            with torch.no_grad():
                views = self.model.views(x, rng, S)
            tape = record(self.model.net, views, S, self.structure.layers)
            with torch.no_grad():
                columns = list(self.likelihood.columns(tape.f.detach(), y, "trio", rng))
                gradients = [tape.gradients(c, create_graph=False, retain=True) for c in columns]
                parts.append(rows_of(tape, gradients))
        with torch.no_grad():
            K = joint_kernel(self.structure.layers, parts, lambda p: precision[id(p)])
            return K * self.likelihood.scale("ggn").to(K)

    def preconditioner(self, fit: Fit, delta: Float[Tensor, " L"], held: bool = False) -> dict[str, Tensor]:
        """Return d log|H| / dT for every statistic of the curvature; `held`, for those of the inputs and for Lambda."""
        scale = self.likelihood.scale(self.output).detach().to(delta)
        with torch.no_grad():
            found = self.structure.preconditioner(fit.spectrum, delta, scale)
        inputs = {name: M for name, M in found.items() if self.structure.of_inputs(name)}
        if not held or not inputs or self.output not in EXPECTED:
            return found
        with torch.enable_grad():
            logdet = self.structure.logdet(fit.spectrum, delta.detach(), scale.requires_grad_())
        (gamma,) = torch.autograd.grad(logdet, scale)
        return inputs | {TRACE: gamma * scale.detach() / max(fit.trace, TINY)}

    def objective(
        self,
        x: Float[Tensor, "B ..."],
        y: Shaped[Tensor, "B ..."],
        preconditioner: dict[str, Tensor],
        seed: int,
        S: int | None = None,
    ) -> Float[Tensor, ""]:
        """Return a number whose gradient in eta, over all processes, is the batch's share of the evidence's (Eq. 16).

        Parameters
        ----------
        x, y
            A batch.
        preconditioner
            d log|H| / dT, or what it is with J held.
        seed
            Seed of the batch's noise.
        S
            Views per input (default: the model's).

        Returns
        -------
        Tensor
            log-likelihood - 1/2 <preconditioner, statistics>.
        """
        x, y, rng = self._own(x, y, seed)
        tape = record(self.model.net, self.model.views(x, rng, S), S or self.model.samples, self.structure.layers)
        total = inner(self.structure.inputs(tape), preconditioner)
        if TRACE in preconditioner:
            total = total + preconditioner[TRACE] * self.likelihood.trace(tape.f)
        for column in () if TRACE in preconditioner else self.likelihood.columns(tape.f, y, self.output, rng):
            grads = tape.gradients(column, create_graph=True, retain=True)
            total = total + inner(self.structure.outputs(tape, grads), preconditioner)
        share = self.likelihood.log_prob(tape.f, y) - total / 2
        return share if rng.part is None or rng.part.weight else share * 0.0

    def gradient(
        self, batches: Batches, preconditioner: dict[str, Tensor], seeds: Callable[[int], int], S: int | None = None
    ) -> list[Tensor]:
        """Return the gradient of the evidence in each parameter of the transformation; arguments as for `fit`."""
        eta = [p for p in self.model.transform.parameters() if p.requires_grad]
        total = [torch.zeros_like(p) for p in eta]
        for k, (x, y) in enumerate(batches):
            share = self.objective(x, y, preconditioner, seeds(k), S)
            grads = torch.autograd.grad(share, eta, allow_unused=True)
            if eta and all(g is None for g in grads):
                raise cut_off()
            total = [t if g is None else t + g for t, g in zip(total, grads, strict=True)]
        self.world.sum_(total)
        return total

    def _own(self, x: Tensor, y: Tensor, seed: int) -> tuple[Tensor, Tensor, Stream]:
        """Return this process's rows of a batch, and the generator of their noise."""
        rng = generator(seed, x.device, part := self.world.part(len(x)))
        return (x, y, rng) if part is None else (x[part.rows], y[part.rows], rng)

    def _sums(self, x: Tensor, y: Tensor, seed: int, S: int | None) -> tuple[Statistics, float, float, float]:
        # Not inlined in `fit`, so that a batch's activations are freed before the next batch.
        x, y, rng = self._own(x, y, seed)
        with torch.no_grad():
            views = self.model.views(x, rng, S)
        tape = record(self.model.net, views, S or self.model.samples, self.structure.layers)
        self.likelihood.check(tape.f, y)
        with torch.no_grad():
            columns = list(self.likelihood.columns(tape.f.detach(), y, self.output, rng))
            statistics = self.structure.inputs(tape)
            for k, column in enumerate(columns):
                grads = tape.gradients(column, create_graph=False, retain=k + 1 < len(columns))
                statistics = added(statistics, self.structure.outputs(tape, grads))
            squares = float((y - tape.f).square().sum()) if y.shape == tape.f.shape else 0.0
            log_prob, trace = float(self.likelihood.log_prob(tape.f, y)), float(self.likelihood.trace(tape.f))
            if rng.part is not None and not rng.part.weight:  # no row was left for this process
                return {name: T * 0.0 for name, T in statistics.items()}, 0.0, 0.0, 0.0
            return statistics, log_prob, squares, trace
