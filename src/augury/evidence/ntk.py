"""A lower bound on the Laplace evidence that needs one mini-batch and no pass over the data.

By the matrix determinant lemma the log-determinants of prior and posterior (paper A, Eq. 9) meet in function space:

    log p(D) = sum_n log p(y_n | f_hat(x_n)) - theta^T P theta / 2 - 1/2 log|I + Q|,    Q = R^T J P^-1 J^T R,

Q between all N * C pairs of a datum and a column of R, R R^T = Lambda. Up to constants, log|I + Q| / 2 is the entropy
h(z) of z ~ N(0, I + Q), and the entropy of the whole is bounded by those of its parts:

    Fischer   h(z) <= sum_b h(z_b) for any partition into blocks b: dropping what lies between blocks can only raise
              the determinant and lower the evidence; merging blocks tightens the bound;
    Han       h(z) <= N / M * E h(z_G) for a group G of M of the N data drawn uniformly; M need not divide N, and the
              right side falls as M grows. The same holds within G for m of the C columns.

Hence, exact for M = N and m = C and tighter for larger M and m,

    log p(D) >= N / M * E [ sum_{n in G} log p(y_n | f_hat(x_n)) - C / 2m * log|I + Q_{G, m}| ] - theta^T P theta / 2.

The term in brackets comes from one mini-batch; its gradients in eta, delta and the observation noise are unbiased for
those of the bound. (The authors' work of 2023 on stochastic marginal-likelihood gradients estimates it from m = 1.)

"exact" takes Q from exact Jacobians. "reduced" takes it from Eq. 14's, the product of averages over copies in place of
the average of products, and bounds the evidence with these. That is no bound on the evidence with exact Jacobians: what
inputs and gradients have in common over the copies is lost, and the determinant is smaller. With one group and all
outputs it was above the exact evidence for 60 of 60 random MLPs (2-5-3, S = 4), by 0.03 to 0.35 nats. Take "exact" for
a value that must be a bound.
"""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.rng import generator
from augury.curvature.ntk import ExactKernel, Kernel, Precisions, ReducedKernel, Subset, log_det, refuse_dropout
from augury.curvature.tape import record, refuse_batch_coupling
from augury.evidence.likelihoods import Likelihood
from augury.models.orbit import OrbitAverage

KERNELS = ("auto", "exact", "reduced")
JACOBIAN = 2**26
"""Most entries of the Jacobian of a group in `NtkBound.at_best`: 256 MB in float32."""

Groups = Iterable[tuple[Tensor, Tensor]]


class NtkBound:
    """The bound for an orbit-averaged network under a Gaussian prior.

    Parameters
    ----------
    model
        The network with its transformation.
    likelihood
        Categorical or Gaussian.
    outputs_per_group
        Columns m of the root of Lambda that a group uses together; None for all of them.
    prior
        Prior precision shared by all ("scalar"), by a layer ("layer") or by a parameter tensor ("tensor").
    kernel
        "reduced" (covered layers: fast), "exact" (any network) or "auto": reduced where every layer is covered.
    chunk
        Data in one call of the network for the exact kernel: it bounds the memory.
    """

    def __init__(
        self,
        model: OrbitAverage,
        likelihood: Likelihood,
        outputs_per_group: int | None = 1,
        prior: str = "scalar",
        kernel: str = "auto",
        chunk: int = 32,
    ) -> None:
        for what, value in (("outputs_per_group", outputs_per_group or 1), ("chunk", chunk)):
            if value < 1:
                raise InputError(f"{what} must be at least 1; got {value}.")
        self.model, self.likelihood, self.outputs_per_group = model, likelihood, outputs_per_group
        self.precisions = Precisions(model.net, prior)
        self.exact = ExactKernel(model.net, self.precisions, chunk)
        self.automatic = choose("kernel", kernel, KERNELS) == "auto"
        self.kernel: Kernel = self.exact if kernel == "exact" else self._reduced()
        self.C: int | None = None

    def _reduced(self) -> Kernel:
        try:
            return ReducedKernel(self.model.net, self.precisions)
        except InputError:
            if not self.automatic:
                raise
            return self.exact

    @property
    def n_delta(self) -> int:
        """Number of prior precisions."""
        return len(self.precisions.names)

    @property
    def delta_names(self) -> list[str]:
        """The layer or parameter of each prior precision, or "all"."""
        return self.precisions.names

    def objective(
        self,
        x: Float[Tensor, "M ..."],
        y: Shaped[Tensor, "M ..."],
        delta: Float[Tensor, " L"],
        N: int,
        seed: int,
        S: int | None = None,
        graph: bool = True,
    ) -> Float[Tensor, ""]:
        """Return an estimate of the bound from one random group: unbiased in value and in every gradient.

        Take gradients with `torch.autograd.grad(objective, [*eta, delta, ...])`: the weights are constants here.

        Parameters
        ----------
        x, y
            The group: M data drawn at random.
        delta
            Prior precisions, as `delta_names` orders them.
        N
            Data in the whole training set.
        seed
            Seed of the group's noise and of its subset of outputs.
        S
            Views per input (default: the model's).
        graph
            Whether eta needs a gradient; without it, those in delta and in the noise cost half.

        Returns
        -------
        Tensor
            The estimate, differentiable in eta, delta and the observation noise.
        """
        estimate = self._group(x, y, delta, seed, S, graph, every_output=False)
        return (estimate * (N / len(x)) - self.precisions.penalty(delta)).to(delta)

    def lower_bound(
        self,
        groups: Groups,
        delta: Float[Tensor, " L"],
        seeds: Callable[[int], int],
        S: int | None = None,
        every_output: bool = True,
    ) -> Float[Tensor, ""]:
        """Return the bound of one partition of the data into groups.

        Parameters
        ----------
        groups
            Inputs and labels, group by group; together the whole training set.
        delta
            Prior precisions.
        seeds
            Seed of group k.
        S
            Views per input (default: the model's).
        every_output
            Whether each group uses a random partition of all outputs: then the value is never above the evidence.
            Otherwise it uses one subset of them: C / m times cheaper, and the same in expectation where m divides C.

        Returns
        -------
        Tensor
            The bound, differentiable in delta and the observation noise.
        """
        parts = [
            self._group(x, y, delta, seeds(k), S, graph=False, every_output=every_output)
            for k, (x, y) in enumerate(groups)
        ]
        return (torch.stack(parts).sum() - self.precisions.penalty(delta)).to(delta)

    @torch.no_grad()
    def at_best(
        self, x: Float[Tensor, "n ..."], y: Shaped[Tensor, "n ..."], N: int, seed: int, S: int | None = None
    ) -> tuple[float, Float[Tensor, " n"]]:
        """Return the bound at its tightest, scaled up to N data, and each datum's log-likelihood.

        Exact Jacobians, all outputs together, groups as large as the memory allows, and the prior precision, one for
        all, at its best: of the weights as they are, so that a large one cannot switch the network off.
        """
        S, squares = S or self.model.samples, self.precisions.penalty(2 * torch.ones(self.n_delta))
        C = self.C or self._inspect(self.model.views(x[:1], generator(seed, x.device), S), S)
        P = sum(p.numel() for p in self.precisions.parameters.values())
        M, terms, spectra = max(1, JACOBIAN // (C * P)), [], []
        for k, (group, labels) in enumerate(zip(x.split(M), y.split(M), strict=True)):
            views = self.model.views(group, generator(seed + k, x.device), S)
            f, (stack,) = self.exact.group(views, S, self.likelihood.root, [torch.arange(C)], graph=False)
            terms.append(self.likelihood.log_probs(f, labels))
            spectra.append(torch.linalg.eigvalsh(stack.sum(0)).clamp(min=0))
        spectrum = torch.cat(spectra) * self.likelihood.scale("ggn").to(spectra[0])
        delta, found = torch.logspace(-3, 5, 161).to(spectrum), torch.cat(terms)
        logdet = torch.log1p(spectrum[:, None] / delta).sum(0)
        bound = N / len(x) * (found.double().sum() - logdet / 2) - delta * squares / 2
        return float(bound.max()), found

    def gradient(
        self, groups: Groups, delta: Float[Tensor, " L"], seeds: Callable[[int], int], S: int | None = None
    ) -> list[Tensor]:
        """Return the gradient of the bound in each parameter of the transformation, one subset of outputs per group."""
        eta = [p for p in self.model.transform.parameters() if p.requires_grad]
        total = [torch.zeros_like(p) for p in eta]
        for k, (x, y) in enumerate(groups):
            share = self._group(x, y, delta.detach(), seeds(k), S, graph=True, every_output=False)
            total = [t + g for t, g in zip(total, torch.autograd.grad(share, eta), strict=True)]
        return total

    def _group(
        self, x: Tensor, y: Tensor, delta: Tensor, seed: int, S: int | None, graph: bool, every_output: bool
    ) -> Tensor:
        refuse_dropout(self.model.net)
        refuse_batch_coupling(self.model.net)
        S = S or self.model.samples
        rng = generator(seed, x.device)
        with torch.set_grad_enabled(graph):
            views = self.model.views(x, rng, S)
        subsets = self._subsets(views, S, rng, every_output)
        f, stacks = self.kernel.group(views, S, self.likelihood.root, subsets, graph)
        self.likelihood.check(f, y)
        scale = self.likelihood.scale("ggn").to(stacks[0])
        log_dets = [log_det(scale * torch.einsum("l,lij->ij", delta.to(stack).reciprocal(), stack)) for stack in stacks]
        weight = f.shape[1] / sum(len(subset) for subset in subsets)
        return self.likelihood.log_prob(f, y).double() - weight * torch.stack(log_dets).sum() / 2

    def _subsets(self, views: Tensor, S: int, rng: torch.Generator, every: bool) -> list[Subset]:
        C = self.C or self._inspect(views[:S], S)
        m = self.outputs_per_group or C
        shuffled = torch.randperm(C, generator=rng, device=rng.device)
        return list(shuffled.split(m)) if every else [shuffled[:m]]

    def _inspect(self, views: Tensor, S: int) -> int:
        """Return the number of outputs for the first datum, and check that the reduced kernel sees every layer."""
        if isinstance(self.kernel, ReducedKernel) and self.automatic:
            try:
                record(self.model.net, views, S, self.kernel.layers)
            except InputError:
                self.kernel = self.exact
        with torch.no_grad():
            C = self.model.net(views).shape[1]
        if (self.outputs_per_group or 1) > C:
            raise InputError(
                f"outputs_per_group must be at most {C}, the outputs of the network; got {self.outputs_per_group}. "
                f"None means all."
            )
        self.C = C
        return C
