r"""Learning invariant weights (paper B): a shallow network, a posterior over its output layer, widths by the bound.

    maximise over q, eta (and W_1)   sum_n E_q E_eps log p(y_n | W_2 phi_hat(x_n; eta, eps)) - KL(q(W_2) || p(W_2))

every epoch           phi_hat of all data at the widths of now; where W_1 is learned (relu), Adam on it meanwhile
                      q up the bound by natural-gradient steps on these features, with the prior precision
                      eta one step up the bound: Rprop on its gradient at q
until                 the widths rest; then each width with interval and verdict, and q once more, with more views

Why in turns, and not all by one optimiser as in the paper? For q that was fitted at other widths the gradient in eta
points back to them (see `evidence.elbo`), so that widths crawl, and stop wherever the schedule ends. For q at its
optimum it is the gradient of the maximised bound, if it is taken on the views that q was fitted to: on fresh ones,
which q does not know, every narrower orbit looks better (from 175 degrees that led back to 105, where the bound is
lower). It is then nearly free of noise, which Rprop is made for: every width has a step of its own, which grows while
the sign of the gradient stays and is halved when it turns. The steps of a width at its best shrink to nothing, and that
is when the loop stops (`settle_window`).

| posterior | q(W_2) |
|---|---|
| natural | full covariance for each output, by natural gradients |
| adam | the same by Adam on (mu, L), together with W_1: the paper's way |
| point | maximum likelihood: W_2 itself by Adam, no KL; fails to learn invariances (section 4.1) |
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from augury.config.learn import LearnConfig
from augury.core.errors import InputError
from augury.core.rng import set_part
from augury.core.world import Part, World
from augury.evidence.elbo import Elbo
from augury.evidence.likelihoods import LIKELIHOODS
from augury.evidence.posterior import NaturalAscent, OutputPosterior
from augury.evidence.refit import SHALLOW
from augury.methods.widths import intervals
from augury.models.shallow import Shallow, ShallowOrbit
from augury.training.batches import Batches, Parts
from augury.training.learner import LOG_EVIDENCE, Findings, Learner, widths_of
from augury.training.optimizers import Cosine, rprop_for_widths
from augury.transforms.base import Transform

View = tuple[Tensor, Tensor, Tensor, Part | None]  # inputs, targets, noise; which part of a batch they are
ENOUGH = 0.002  # gain of the bound per datum, in nats, below which q counts as fitted
FINAL_STEPS = 5  # natural-gradient steps at most on the final features


class InvariantWeights(Learner):
    """Widths by the variational bound of a shallow network."""

    model: ShallowOrbit
    ends_with = "intervals of the widths"

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        if not isinstance(net, Shallow):
            raise InputError(
                f"method 'invariant_weights' takes shallow networks, whose features it averages: models rff, relu, "
                f"rff_256, relu_256, or augury.models.shallow; got {type(net).__name__}. For others take method 'lila'."
            )
        self.config, self.N = config, N
        self.model = ShallowOrbit(net, transform, config.samples, config.samples_eval, config.side)
        self.likelihood = LIKELIHOODS[task]().to(config.device)
        self.bound: Elbo | None = None
        self.natural: NaturalAscent | None = None
        if config.posterior != "point":
            posterior = OutputPosterior(net.output, config.delta)
            self.bound = Elbo(self.model, posterior, self.likelihood, N)
            self.bound.fit_prior = config.delta_steps > 0
            if config.posterior == "natural":
                self.natural = NaturalAscent(posterior, self.likelihood, fit_prior=config.delta_steps > 0)
        self.trained = self._trained(net)
        self.weights = torch.optim.Adam(self.trained, lr=config.rate) if self.trained else None
        self.widths = rprop_for_widths(transform, config) if config.eta_rate > 0 else None
        # The widths follow no schedule, so that only the bound can stop them.
        self.cosines = [] if self.weights is None else [Cosine(self.weights, config.rate_end)]
        self.views: list[View] = []
        self.features: list[Tensor] = []

    def _trained(self, net: Shallow) -> list[nn.Parameter]:
        """Return what Adam moves."""
        hidden = [p for p in net.parameters() if p.requires_grad and p is not net.output.weight]
        if self.config.posterior == "natural":
            return hidden
        scale = [] if self.bound is None else [self.bound.posterior.scale]
        return [*hidden, net.output.weight, *scale, *self.likelihood.parameters()]

    def join(self, world: World) -> None:
        super().join(world)
        if self.natural is not None:
            self.natural.world = world
        if world.size > 1:  # by the whole batch, not by a part of it
            self.model.side = self.model.cheaper_side(min(self.config.batch, self.N))

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        """Average the features of a batch over the orbit; take one step on whatever Adam moves."""
        part: Part | None = getattr(rng, "part", None)
        with torch.set_grad_enabled(bool(self.trained)):
            eps = self._noise(x, self.model.samples, rng)
            phi = self.model.mean_features(x, eps)
            loss = -self._log_likelihood(phi, y, rng) / len(x)
            if self.weights is None:
                self.views.append((x, y, eps, part))
                self.features.append(phi)
                return self.world.sums([loss.item() * (1.0 if part is None else part.weight)])[0]
            kl = self.bound.posterior.kl() if self.bound and self.natural is None else 0.0
            prior = self.model.net.hidden_penalty().to(loss) if self.bound else 0.0
        value = self.backward(loss + (kl + prior) / self.N, loss, rng, self.weights)
        self.weights.step()
        return value

    def _noise(self, x: Tensor, S: int, rng: torch.Generator) -> Tensor:
        self.model.transform.check(x)
        return self.model.noise(len(x), S, rng).to(x)

    def _log_likelihood(self, phi: Tensor, y: Tensor, rng: torch.Generator) -> Tensor:
        if self.bound is not None:
            return self.bound.log_likelihood(phi, y, rng)
        return self.likelihood.log_prob(self.model.net.output(phi), y)

    def end_epoch(self, batches: Batches, epoch: int, rng: torch.Generator) -> dict[str, float]:
        """Fit q to the features of the epoch, then take one step on the widths."""
        if self.natural is not None:
            self._fit(batches, self.model.samples, self.config.posterior_steps, rng)
        elif self.bound is not None and self.config.delta_steps > 0:
            self.bound.posterior.fit_prior_()
        moves = self.widths is not None and self.config.burn_in < epoch < self.config.epochs
        log_likelihood = self._log_likelihood_of_views(batches, rng, moves)
        if moves and self.widths is not None:
            self.widths.step()
            self.model.transform.project_()
        if self.bound is None:
            return {"log_likelihood": log_likelihood}
        kl = float(self.bound.posterior.kl().detach())
        return {LOG_EVIDENCE: log_likelihood - kl, "kl": kl, "delta": float(self.bound.posterior.delta)}

    def _fit(self, batches: Batches, S: int, steps: int, rng: torch.Generator) -> None:
        """Bring q to the features of all the data: those of the epoch, or fresh ones where W_1 has moved since."""
        if not self.views:
            self.views = list(self._drawn(batches.parts(), S, rng))
            set_part(rng, None)
        if not self.features:
            with torch.no_grad():
                self.features = [self.model.mean_features(x, eps) for x, _, eps, _ in self.views]
        pairs = zip(self.features, self.views, strict=True)
        whole = [[self.world.gather(t, part) for t in (phi, y)] for phi, (_, y, _, part) in pairs]
        phi, y = (torch.cat(parts) for parts in zip(*whole, strict=True))
        self.features = []
        seed = int(torch.randint(2**61, (), generator=rng, device=rng.device))
        if self.natural is not None:
            self.natural.climb(phi, y, seed, steps, ENOUGH)

    def _drawn(self, parts: Parts, S: int, rng: torch.Generator) -> Iterator[View]:
        """Give parts of batches with the noise of their views."""
        for x, y, part in parts:
            set_part(rng, part)
            yield x, y, self._noise(x, S, rng), part

    def _log_likelihood_of_views(self, batches: Batches, rng: torch.Generator, with_gradient: bool) -> float:
        """Return the log-likelihood of q's own views, scaled up to N; leave its gradient, as a loss, in the widths."""
        eta, total, n = list(self.model.transform.parameters()), 0.0, 0
        sums = [torch.zeros_like(p) for p in eta]
        views = self.views or self._drawn(batches.parts(rng), self.model.samples, rng)
        for x, y, eps, part in views:
            set_part(rng, part)
            share, rows = (1.0, len(x)) if part is None else (float(part.weight > 0), part.total)
            with torch.set_grad_enabled(with_gradient):
                value = self._log_likelihood(self.model.mean_features(x, eps), y, rng) * share
            total, n = total + value.item(), n + rows
            if with_gradient:
                torch._foreach_add_(sums, torch.autograd.grad(value, eta))
            if n >= self.config.evidence_images:
                break
        self.views = []
        set_part(rng, None)
        self.world.sum_(sums)
        (total,) = self.world.sums([total])
        for p, g in zip(eta, sums, strict=True):
            p.grad = -g
        return total * self.N / n

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        made = {"weights": self.weights, "widths": self.widths}
        return {name: optimizer for name, optimizer in made.items() if optimizer is not None}

    def modules(self) -> Mapping[str, nn.Module]:
        """Return the model, and the posterior with all it needs to go on."""
        if self.natural is not None:
            return {"model": self.model, "posterior": self.natural}
        posterior = {} if self.bound is None else {"posterior": self.bound.posterior}
        return {"model": self.model, "likelihood": self.likelihood, **posterior}

    def conclude(self, batches: Batches, rng: torch.Generator) -> Findings:
        """Give every width its interval and verdict; fit q once more with the views of evaluation."""
        if self.bound is None:
            return Findings(widths_of(self.transform, "undecided"))
        found = Findings(widths_of(self.transform, "given"))
        if self.widths is not None:
            found = intervals(self.bound, batches, rng, self.config.slight, self.tell)
        if self.natural is not None:
            self._fit(batches, self.model.samples_eval, FINAL_STEPS, rng)
        if self.widths is not None and self.N <= SHALLOW:  # the profile has seen all data, and has their bound
            return found
        return replace(found, log_evidence=self.bound.value(batches(), rng))
