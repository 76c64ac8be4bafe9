r"""The evidence at other widths with the output layer refitted there: what a profile along a width consists of.

    l(eta) = max over W, delta, sigma of  log p(D | eta, W, ...),      the layers below and the noise eps held

Weights trained at one width fit every other width worse than weights trained there. Averaging outputs over the orbit is
averaging the inputs of the output layer, f_hat = W phi_hat, so that its best weights are a convex problem:

| evidence | refitted |
|---|---|
| Elbo, Gaussian noise | W_2, delta, sigma: log N(y; 0, Phi Phi^T / delta + sigma^2 I) in closed form |
| Elbo, classes | q(W_2) by natural-gradient steps, delta |
| Laplace, last layer only, Gaussian noise | W (ridge regression), delta, sigma: the same by another way |
| Laplace | W of the last layer (ridge or logistic regression); delta and sigma held |
| NTK bound | nothing |

log det H of Laplace comes from the exact GGN; if layers below have a posterior too, from that of all layers at once,
for `CURVED` data (`curvature.joint`). It depends on W then, and moving delta or sigma would need it anew at each step:
they are held at what all of the training found, and l comes from n of the data (`DEEP`), scaled up to N. The output
layer fits n data too well, by half a nat for each number that it fits, and narrow orbits, whose features vary more,
the most: (N / n - 1) / 2 of these numbers are taken off (`_fitted`).

For shallow networks with fixed features that is everything. Refitting all weights of a deep network at fixed noise does
not converge: on a CNN and 1,000 digits, 25 steps of L-BFGS gained 200 nats and the last of them still 5.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.rng import generator
from augury.curvature.joint import growth, half_log_det, sum_of
from augury.curvature.tape import last_layer, rows_per_pass
from augury.data.rows import Rows, taken
from augury.evidence.ascent import Evidence, NtkEvidence
from augury.evidence.elbo import Elbo
from augury.evidence.laplace import Fit
from augury.evidence.likelihoods import Gaussian
from augury.evidence.posterior import NaturalAscent, OutputPosterior, logistic, ridge
from augury.models.batchnorm import evaluating
from augury.models.orbit import OrbitAverage

VIEWS, FEWEST = 32, 8  # views for a single width, whose midpoint rule is exact to 0.1 nats; for several
CURVED, GROUPS = 60, 10  # data behind log det H, extended to all; groups of them that tell its noise
SHALLOW, KERNEL = 1000, 200  # most data behind l: Elbo, NTK
DEEP = 400, 1000  # of Laplace with layers below a tenth of the data, at least and at most so many
WHOLE = 5000  # most data behind the evidence that is reported
SETTLED = 50_000  # most data behind the last layer in the end: their features are held in memory
LEAST = 0.25  # share of the sum of squares that is left without the noise of the views, at least
STEPS = 10  # natural-gradient steps at one width, at most
ENOUGH = 0.02  # nats: natural-gradient steps that would gain less are not taken


@dataclass(frozen=True)
class Knot:
    """The evidence at one width, refitted."""

    log_p: float
    """l(eta_k)."""
    noise: Float[Tensor, " n"]
    """Noise of each datum's log-likelihood that comes from the views, in one draw; zeros where there is none."""
    terms: Float[Tensor, " n"] | None = None
    """Each datum's log-likelihood, where the layers below were not refitted and l is that of a model that is wrong."""
    N: int = 0
    """Data that l is scaled up to; 0 for those that it was computed from."""
    by_group: Float[Tensor, " groups"] | None = None
    """log det H from each group of the sample behind it, where it is extended from one; its mean has their noise."""


class Refit(ABC):
    """A model whose evidence is available at any widths, with its output layer, prior and noise at their best there."""

    def __init__(self, model: OrbitAverage, x: Tensor | Rows, y: Tensor, seed: int, most: int | None) -> None:
        self.model, self.all_x, self.seed = model, x, seed
        self.x, self.y = x[:most], y[:most]
        self.all_y, self.N = y, len(self.x)  # N: data whose evidence it is

    held = False
    """Whether layers below the output stay as they were trained."""
    jitter: Mapping[str, float] = MappingProxyType({})
    """Standard deviation of each width over the last steps up the evidence, as eta, where known."""

    @property
    def views(self) -> int:
        K = self.model.transform.noise_dim
        return (1, VIEWS)[K] if K < 2 else max(FEWEST, self.model.samples)

    @abstractmethod
    def knot(self) -> Knot:
        """Refit at the current widths, starting from the current state."""

    def settle(self) -> None:  # noqa: B027
        """Refit once more, to all data and with the model's own way of drawing views."""

    def total(self, log_p: float) -> float | None:
        """Return the evidence of all data at the current widths, given the last knot's; None if not known."""
        return log_p if len(self.x) == len(self.all_x) else None

    def state(self) -> Any:
        """Return a copy of everything that `knot` moves."""
        return None

    def restore(self, state: Any) -> None:  # noqa: B027
        """Restore what `state` returned."""


class ElboRefit(Refit):
    """Refits q(W_2), the prior precision and the noise; the first layer is held.

    For classes q lives in the span of the N features, where natural-gradient steps cost N^3 and not F^3: outside it,
    q is the prior. Between widths, whose spans differ, it is passed on as each datum's share of its natural parameters.
    """

    def __init__(self, bound: Elbo, x: Tensor | Rows, y: Tensor, seed: int) -> None:
        super().__init__(bound.model, x, y, seed, SHALLOW)
        self.bound, self.delta, self.C = bound, float(bound.posterior.delta), len(bound.posterior.mean)
        self.sites: tuple[Tensor, Tensor] | None = None
        self.held = any(p.requires_grad and p is not bound.posterior.mean for p in bound.model.net.parameters())

    @torch.no_grad()
    def knot(self) -> Knot:
        """Return the log evidence (Gaussian noise) or the bound (classes)."""
        model = self.bound.model
        eps = model.transform.noise(len(self.x), self.views, generator(self.seed, self.x.device)).to(self.x)
        parts = zip(self.x.split(250), eps.split(250), strict=True)
        phi = torch.cat([model.mean_features(x, e, "input") for x, e in parts])
        regression = isinstance(self.bound.likelihood, Gaussian)
        return Knot(gaussian_evidence(phi, self.y) if regression else self._climb(phi), torch.zeros(len(phi)))

    def _climb(self, phi: Float[Tensor, "N F"]) -> float:
        U, s, _ = torch.linalg.svd(phi, full_matrices=False)
        Z = U * s
        layer = nn.Linear(len(s), self.C, bias=False).to(Z)
        q = NaturalAscent(OutputPosterior(layer, self.delta), self.bound.likelihood, self.bound.fit_prior)
        if self.sites is not None:
            q.start(Z, *self.sites)
        log_p = q.climb(Z, self.y, self.seed, STEPS, ENOUGH / len(Z))
        self.delta, self.sites = float(q.posterior.delta), q.sites(Z, self.y, self.seed)
        return log_p

    def state(self) -> Any:
        return self.sites, self.delta

    def restore(self, state: Any) -> None:
        self.sites, self.delta = state


class LaplaceRefit(Refit):
    """Refits the last layer, and delta and sigma where only it has a posterior; the layers below are held."""

    def __init__(self, evidence: Evidence, x: Tensor | Rows, y: Tensor, seed: int) -> None:
        self.evidence, self.head = evidence, output_layer(evidence, x[:1])
        own = set() if self.head is None else {id(p) for p in self.head.parameters()}
        alone = all(id(p) in own for block in evidence.laplace.structure.blocks for p in block.parameters)
        self.shallow = alone and isinstance(evidence.likelihood, Gaussian)
        below = any(p.requires_grad and id(p) not in own for p in evidence.model.net.parameters())
        self.held = below and not self.shallow  # frozen layers were trained for no width
        super().__init__(evidence.model, x, y, seed, None if self.shallow else min(max(DEEP[0], len(x) // 10), DEEP[1]))
        self.N, self.share = len(x), len(self.x) / len(x)
        self.power: float | None = None  # of the data, with which log det H grows: one for all widths, or it is noise

    def knot(self) -> Knot:
        """Return the Laplace evidence with the exact GGN."""
        likelihood = self.evidence.likelihood
        with evaluating(self.model.net, self.evidence.settings.batchnorm):
            halves = self._features(self.x, self.views)
            phi = halves.mean(0)
            self._refit(phi, self.y, self.share)
            weights, by_group = (self._of_all_weights(phi), None) if self.shallow else self._of_joint_weights()
        with torch.no_grad():
            f, by_half = self._f(phi), [self._f(half) for half in (halves[0], halves[-1])]
            terms = without_noise(lambda f: likelihood.log_probs(f, self.y), f, *by_half)
            squares = without_noise(lambda f: likelihood.residual(f, self.y).square(), f, *by_half).sum()
            residual = likelihood.residual(f, self.y)
            squares = torch.maximum(squares, residual.square().sum() * LEAST)
            sums = [float(value) / self.share for value in (terms.double().sum(), squares, self.y.numel())]
            log_p = float(likelihood.from_sums(*sums)) + weights - (1 / self.share - 1) / 2 * self._fitted(phi, f)
            halved = (by_half[0] - by_half[1]) / 2
            noise = (halved * residual * likelihood.scale("ggn")).sum(1)
        return Knot(log_p, noise, None if self.shallow else terms, self.N, by_group)

    @torch.no_grad()
    def _fitted(self, phi: Float[Tensor, "N F"], f: Float[Tensor, "N C"]) -> float:
        """Return how many numbers the last layer has fitted, tr (H + P)^-1 H with Lambda alike in all directions.

        A fit to n data is half a nat too good for each; scaled up to N, N / n halves, where a fit to N has one.
        """
        if self.head is None or self.share == 1:
            return 0.0
        likelihood = self.evidence.likelihood
        columns = list(likelihood.columns(f, self.y, "ggn", generator(self.seed, phi.device)))
        Lambda = sum_of([c.square().sum(1) for c in columns]).double() * likelihood.scale("ggn") / len(columns)
        pull = self._pull(self.head, phi.shape[1]).double() * self.share
        s2 = torch.linalg.svdvals(phi.double() / pull.sqrt() * Lambda.sqrt()[:, None]).square()
        return len(columns) * float((s2 / (1 + s2)).sum())

    def _of_joint_weights(self) -> tuple[float, Float[Tensor, " groups"]]:
        """Return log p(theta) - log|H / 2 pi| / 2 of all layers at once, extended from a sample, and by group."""
        S, n, delta = min(self.views, FEWEST), min(CURVED, len(self.all_x)), self.evidence.delta
        parts = zip(*(t[:n].split(self._rows(S)) for t in (self.all_x, self.all_y)), strict=True)
        K = self.evidence.laplace.kernel(parts, lambda k: self.seed + k, S, delta)
        self.power = growth(K) if self.power is None else self.power
        rest, power = (1 - n / self.N) ** 0.5, self.power

        def extended(group: Tensor) -> float:
            return -half_log_det(K[:, group][:, :, :, group]) * (self.N / len(group)) ** power

        with torch.no_grad():
            groups = [rest * extended(group) for group in torch.arange(n).chunk(GROUPS)]
            return extended(torch.arange(n)) - self.N * float(self.evidence.penalty()), torch.tensor(groups)

    def _of_all_weights(self, phi: Float[Tensor, "N F"]) -> float:
        """Return the same if only the last layer has a posterior: exact, with delta and sigma at their best."""
        laplace, S = self.evidence.laplace, self.views
        output, laplace.output = laplace.output, "ggn"
        try:
            parts = zip(*(t.split(self._rows(S)) for t in (self.x, self.y)), strict=True)
            fit = laplace.fit(parts, lambda k: self.seed + k, S, self.N, gradients=False)
            self._climb(phi, fit)
            with torch.no_grad():
                likelihood = self.evidence.likelihood.from_sums(fit.log_likelihood, fit.residual, fit.numbers)
                return float(laplace.log_evidence(fit, self.evidence.delta) - likelihood)
        finally:
            laplace.output = output

    def total(self, log_p: float) -> float:
        if len(self.x) == len(self.all_x):
            return log_p
        few = self.x, self.y, self.share
        self.x, self.y = self.all_x[:WHOLE], self.all_y[:WHOLE]
        self.share = len(self.x) / self.N
        log_p = self.knot().log_p
        self.x, self.y, self.share = few
        return log_p

    def _rows(self, S: int) -> int:
        return max(1, rows_per_pass(self.model.net, self.x[:1]) // S)

    @torch.no_grad()
    def _features(self, x: Tensor | Rows, S: int) -> Float[Tensor, "H N F"]:
        """Return the inputs of the last layer (f_hat without one), averaged over two independent halves of the views.

        A single width has no halves: its views are the nodes of a midpoint rule.
        """
        net, halves, seen = self.model.net, 1 if self.model.transform.noise_dim < 2 else 2, []
        each, world = max(1, S // halves), self.evidence.world
        hook = self.head and self.head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        phi, at = torch.empty(0), 0
        for k, part in enumerate(x.split(self._rows(S))):
            for half in range(halves):
                own = world.part(len(part))
                rng = generator(self.seed + halves * k + half, x.device, own)
                rows = part if own is None else part[own.rows]
                f = net(self.model.views(rows, rng, each))
                found = world.gather((seen.pop() if hook else f).unflatten(0, (len(rows), each)).mean(1), own)
                phi = phi if len(phi) else found.new_empty(halves, len(x), *found.shape[1:])  # small tensors between
                phi[half, at : at + len(part)] = found  # large ones would keep the heap from shrinking: gigabytes
            at += len(part)
        if hook:
            hook.remove()
        return nn.functional.pad(phi, (0, 1), value=1.0) if self.head and self.head.bias is not None else phi

    def _f(self, phi: Float[Tensor, "N F"]) -> Float[Tensor, "N C"]:
        return phi if self.head is None else phi @ _joint(self.head).to(phi).mT

    @torch.no_grad()
    def _refit(self, phi: Float[Tensor, "N F"], y: Tensor, share: float) -> None:
        """Move the last layer to its best weights at the current delta and sigma, under that share of the prior."""
        if self.head is None:
            return
        pull = self._pull(self.head, phi.shape[1]) * share
        if isinstance(self.evidence.likelihood, Gaussian):
            W = ridge(phi.double(), y.double(), pull * self.evidence.likelihood.log_sigma2.exp().double())
        else:
            W = logistic(phi.double(), y, pull, _joint(self.head).double())
        self.head.weight.copy_(W[:, : self.head.in_features])
        if self.head.bias is not None:
            self.head.bias.copy_(W[:, -1])

    def _pull(self, head: nn.Linear, F: int) -> Float[Tensor, " F"]:
        """Return the prior precision of each column of the last layer, bias last."""
        structure = self.evidence.laplace.structure
        pairs = zip(structure.blocks, structure.delta_of_blocks(self.evidence.delta), strict=True)
        own = {id(p): d for block, d in pairs for p in block.parameters}
        pull = own[id(head.weight)].expand(F).clone()
        if head.bias is not None:
            pull[-1] = own[id(head.bias)]
        return pull

    def _climb(self, phi: Float[Tensor, "N F"], fit: Fit) -> None:
        """Move delta and sigma, the last layer with them: at its best it adds nothing to their gradient."""
        evidence = self.evidence
        hyper = [evidence.log_delta, *evidence.likelihood.parameters()]

        def loss() -> Tensor:
            self._refit(phi, self.y, 1.0)
            all_data = replace(fit, residual=float((self.y - self._f(phi)).square().sum()))
            log_p = evidence.laplace.log_evidence(all_data, evidence.log_delta.exp())
            for p, g in zip(hyper, torch.autograd.grad(-log_p, hyper), strict=True):
                p.grad = g
            return -log_p.detach()

        torch.optim.LBFGS(hyper, max_iter=15, line_search_fn="strong_wolfe").step(loss)
        self._refit(phi, self.y, 1.0)

    def settle(self) -> None:
        """Refit to all data, with as many views as in evaluation: their noise keeps the weights small."""
        x, y = taken(self.all_x, slice(SETTLED)), self.all_y[:SETTLED]
        with evaluating(self.model.net, self.evidence.settings.batchnorm):
            self._refit(self._features(x, self.model.samples_eval).mean(0), y, len(y) / len(self.all_y))

    def state(self) -> list[Tensor]:
        return [p.detach().clone() for p in self._moved()]

    @torch.no_grad()
    def restore(self, state: list[Tensor]) -> None:
        for p, s in zip(self._moved(), state, strict=True):
            p.copy_(s)

    def _moved(self) -> list[Tensor]:
        head = [] if self.head is None else list(self.head.parameters())
        return [*head, self.evidence.log_delta, *self.evidence.likelihood.parameters()]


class NtkRefit(Refit):
    """Refits nothing: the bound of the NTK along the width, weights held."""

    held = True

    def __init__(self, evidence: NtkEvidence, x: Tensor | Rows, y: Tensor, seed: int) -> None:
        super().__init__(evidence.model, x, y, seed, KERNEL)
        self.evidence, self.N = evidence, len(x)

    def knot(self) -> Knot:
        """Return the bound at its tightest, scaled up from these data."""
        with evaluating(self.model.net, self.evidence.settings.batchnorm):
            bound, terms = self.evidence.bound.at_best(self.x, self.y, self.N, self.seed, self.views)
        return Knot(bound, torch.zeros_like(terms), terms, self.N)

    def total(self, log_p: float) -> float:
        return log_p  # scaled up already


def _joint(layer: nn.Linear) -> Float[Tensor, "C F"]:
    """Return weight and bias side by side, without a graph."""
    joint = layer.weight if layer.bias is None else torch.cat([layer.weight, layer.bias[:, None]], 1)
    return joint.detach()


def output_layer(evidence: Evidence, x: Tensor) -> nn.Linear | None:
    """Return the linear layer whose outputs are those of the network; None if it ends in something else."""
    net, batchnorm, seen = evidence.model.net, evidence.settings.batchnorm, []
    with evaluating(net, batchnorm):
        layer = net.get_submodule(last_layer(net, x))
    if not isinstance(layer, nn.Linear) or not layer.weight.requires_grad:
        return None
    handle = layer.register_forward_hook(lambda _, inputs, z: seen.append((inputs[0].ndim, z)))
    with torch.no_grad(), evaluating(net, batchnorm):
        f = net(x)
    handle.remove()
    return layer if len(seen) == 1 and seen[0][0] == 2 and torch.equal(seen[0][1], f) else None


def without_noise(of: Callable[[Tensor], Tensor], f: Tensor, one: Tensor, other: Tensor) -> Float[Tensor, "B ..."]:
    """Return a concave or convex function of E[f] without the bias of f's noise, to second order.

    f is the mean of two independent halves of the views; the noise of a half has twice the variance of f's, and so does
    its bias: a quadratic function has none left.
    """
    return 2 * of(f) - (of(one) + of(other)) / 2


def gaussian_evidence(phi: Float[Tensor, "N F"], y: Float[Tensor, "N C"]) -> float:
    """Return max over delta, sigma of log N(y; 0, Phi Phi^T / delta + sigma^2 I), summed over outputs.

    In the eigenbasis of Phi Phi^T it depends on r = sigma^2 delta and on the scale 1 / delta, whose best value has a
    closed form; r is found on a fine grid.
    """
    N, C = y.shape
    U, s, _ = torch.linalg.svd(phi.double(), full_matrices=False)
    z = (U.mT @ y.double()).square().sum(1)
    rest, null = (y.double().square().sum() - z.sum()).clamp(min=0), N - len(s)

    def at(log_r: Tensor) -> Tensor:
        r = log_r.exp()
        v = s.square() + r[:, None]
        squares = ((z / v).sum(1) + rest / r) / (N * C)
        return -(C * (v.log().sum(1) + null * log_r) + N * C * ((2 * math.pi * squares).log() + 1)) / 2

    span = torch.linspace(-12, 12, 97).to(s) + s.square().mean().log()
    for _ in range(2):
        best, step = span[at(span).argmax()], span[1] - span[0]
        span = best + step * torch.linspace(-1, 1, 65).to(s)
    return float(at(span).max())
