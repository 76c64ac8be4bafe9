"""The variational bound (paper B, Eqs. 9-10) against closed forms, in float64."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from augury.core.errors import RunError
from augury.core.rng import generator
from augury.evidence import posterior
from augury.evidence.elbo import Elbo
from augury.evidence.likelihoods import Categorical, Gaussian
from augury.evidence.posterior import NaturalAscent, OutputPosterior, cholesky, expected_log_prob
from augury.models.shallow import Relu, Rff, ShallowOrbit
from augury.transforms.affine2d import AffineCoordinates
from reference.elbo import exact_posterior, kl, log_evidence, two_class_expectation
from refusal import refused

N, UNITS, C = 40, 12, 3


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


def prior(outputs: int = C, delta: float = 1.0) -> OutputPosterior:
    return OutputPosterior(nn.Linear(UNITS, outputs, bias=False, dtype=torch.float64), delta)


def some_posterior(delta: float = 1.7) -> OutputPosterior:
    q = prior(delta=delta)
    with torch.no_grad():
        q.mean.copy_(draw(C, UNITS, seed=1))
        q.scale.copy_(draw(C, UNITS, UNITS, seed=2).tril() * 0.3 + 0.5 * torch.eye(UNITS))
    return q


def problem(task: str = "regression", sampling: str = "grid", net=Rff):
    """Return a bound whose views are always the same, with its data: every feature is then fixed."""
    transform = AffineCoordinates("rotation", sampling).double()
    transform.set_widths({"rotation": 50.0})
    model = ShallowOrbit(net((2,), C, generator(0), units=UNITS).double(), transform, 5, 5)
    x = draw(N, 2, seed=3)
    y = draw(N, C, seed=4) if task == "regression" else torch.arange(N) % C
    likelihood = (Gaussian(0.3) if task == "regression" else Categorical()).double()
    return Elbo(model, OutputPosterior(model.net.output, 1.3), likelihood, N), x, y


def levels(bound: Elbo) -> tuple[float, float]:
    return bound.posterior.delta.item(), bound.likelihood.log_sigma2.exp().item()


def features(bound: Elbo, x: Tensor) -> Tensor:
    return bound.model.mean_features(x, bound.model.noise(len(x), 5, generator(0)).double()).detach()


def test_kl_is_that_of_torch_distributions():
    q = some_posterior()
    assert q.kl().item() == pytest.approx(kl(q.mean, q.scale, q.delta.item()).item(), rel=1e-10)
    assert prior(delta=2.5).kl().item() == pytest.approx(0.0, abs=1e-10)


def test_outputs_have_the_moments_of_the_weights():
    q, phi = some_posterior(), draw(4, UNITS, seed=5)
    m, v = q.moments(phi)
    covariance = q.scale.mT @ q.scale
    torch.testing.assert_close(m, phi @ q.mean.mT)
    torch.testing.assert_close(v, torch.einsum("bi,cij,bj->bc", phi, covariance, phi))
    drawn = torch.stack([q.sample(generator(seed)) for seed in range(800)]) @ phi.mT
    assert (drawn.mean(0) - m.mT).abs().max() < 5 * v.max().sqrt() / 800**0.5
    assert (drawn.var(0) / v.mT - 1).abs().max() < 0.25


def test_prior_precision_that_is_set_makes_the_bound_greatest():
    q = some_posterior()
    q.fit_prior_()
    best = q.kl().item()
    for factor in (0.95, 1.05):
        q.log_delta.add_(torch.tensor(factor).log())
        assert q.kl().item() > best
        q.log_delta.sub_(torch.tensor(factor).log())


def test_the_bound_is_the_exact_evidence_at_the_exact_posterior():
    bound, x, y = problem()
    phi = features(bound, x)
    exact = log_evidence(phi, y, *levels(bound)).item()
    natural = NaturalAscent(bound.posterior, bound.likelihood, fit_prior=False)
    assert natural.climb(phi, y, 0, steps=1, enough=0.0) == pytest.approx(exact, rel=1e-10)
    mean, covariance = exact_posterior(phi, y, *levels(bound))
    torch.testing.assert_close(bound.posterior.mean, mean, rtol=1e-8, atol=1e-10)
    L = bound.posterior.scale
    torch.testing.assert_close(L.mT @ L, covariance.expand_as(L), rtol=1e-8, atol=1e-10)
    assert bound.value([(x, y)], generator(0)) == pytest.approx(exact, rel=1e-10)
    assert bound.estimate(x, y, generator(0)).item() == pytest.approx(exact, rel=1e-10)


def test_the_bound_is_below_the_evidence_everywhere_else():
    bound, x, y = problem()
    exact = log_evidence(features(bound, x), y, *levels(bound)).item()
    NaturalAscent(bound.posterior, bound.likelihood, fit_prior=False).climb(features(bound, x), y, 0, 1, 0.0)
    q, best = bound.posterior, [p.detach().clone() for p in bound.posterior.parameters()]
    for seed in range(40):
        size = 10.0 ** -(seed % 4)
        with torch.no_grad():
            q.mean.copy_(best[0] + size * draw(C, UNITS, seed=seed))
            q.scale.copy_(best[1] + size * 0.1 * draw(C, UNITS, UNITS, seed=seed + 100).tril())
        assert bound.value([(x, y)], generator(0)) < exact


def test_random_views_lower_the_bound_and_mini_batches_estimate_it_without_bias():
    """Jensen's inequality, the last line of Eq. 9: fewer views, a lower bound in expectation."""
    bound, x, y = problem(sampling="independent")
    values = {}
    for S in (2, 20):
        bound.model.samples = S
        values[S] = sum(bound.estimate(x, y, generator(seed)).item() for seed in range(12)) / 12
    assert values[2] < values[20]
    bound, x, y = problem()
    parts = [bound.estimate(a, b, generator(0)).item() for a, b in zip(x.split(8), y.split(8), strict=True)]
    assert sum(parts) / len(parts) == pytest.approx(bound.value([(x, y)], generator(0)), rel=1e-10)
    halves = zip(x.split(20), y.split(20), strict=True)
    assert bound.value(halves, generator(0)) == pytest.approx(bound.value([(x, y)], generator(0)), rel=1e-10)


@pytest.mark.parametrize("net", [Rff, Relu])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_gradients_match_finite_differences(task, net):
    bound, x, y = problem(task, "stratified", net)
    with torch.no_grad():
        bound.posterior.mean.add_(draw(C, UNITS, seed=6) * 0.3)
        bound.posterior.scale.mul_(0.5)
    theta = [*bound.eta, bound.posterior.mean, bound.posterior.scale, *bound.likelihood.parameters()]
    theta += [p for n, p in bound.model.net.named_parameters() if n.startswith("hidden")]
    exact = torch.autograd.grad(bound.estimate(x, y, generator(7)), theta)
    h = 1e-5
    for k, (p, g) in enumerate(zip(theta, exact, strict=True)):
        direction = draw(*p.shape, seed=8 + k)
        direction = direction.tril() if p is bound.posterior.scale else direction
        sides = []
        for step in (h, -2 * h):
            with torch.no_grad():
                p.add_(step * direction)
                sides.append(bound.estimate(x, y, generator(7)).item())
        with torch.no_grad():
            p.add_(h * direction)
        numeric = (sides[0] - sides[1]) / (2 * h)
        assert (g * direction).sum().item() == pytest.approx(numeric, rel=1e-5, abs=1e-5)


def test_gradient_in_eta_is_that_of_the_estimate_and_replays():
    bound, x, y = problem("classification", "stratified")
    first, again, other = (bound.gradient(x, y, seed)[0] for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_two_classes_against_an_integral():
    m, v = draw(2, 2, seed=1), draw(2, 2, seed=2).square() + 0.1
    for y in (0, 1):
        labels = torch.tensor([y, y])
        ours = expected_log_prob(Categorical(), m, v, labels, generator(0), draws=200_000)
        exact = sum(two_class_expectation(m[b], v[b], y) for b in range(2))
        assert ours.log_prob.item() == pytest.approx(exact, abs=0.01)


def test_slope_and_curvature_are_derivatives_in_mean_and_variance():
    m, v = draw(1, 2, seed=1), draw(1, 2, seed=2).square() + 0.1
    ours = expected_log_prob(Categorical(), m, v, torch.tensor([1]), generator(0), draws=400_000)
    h = 1e-3
    for c in range(2):
        e = h * torch.eye(2, dtype=torch.float64)[c]
        slope = two_class_expectation(m[0] + e, v[0], 1) - two_class_expectation(m[0] - e, v[0], 1)
        curved = two_class_expectation(m[0], v[0] + e, 1) - two_class_expectation(m[0], v[0] - e, 1)
        assert ours.slope[0, c].item() == pytest.approx(slope / (2 * h), abs=0.005)
        assert ours.curvature[0, c].item() == pytest.approx(-curved / h, abs=0.005)


def test_gaussian_expectation_in_closed_form():
    likelihood, m, v, y = Gaussian(0.3).double(), draw(5, 2), draw(5, 2, seed=1).square(), draw(5, 2, seed=2)
    ours = expected_log_prob(likelihood, m, v, y, generator(0))
    f = m + v.sqrt() * draw(100_000, 5, 2, seed=3)
    drawn = torch.distributions.Normal(f, 0.3**0.5).log_prob(y).sum((1, 2)).mean()
    assert ours.log_prob.item() == pytest.approx(drawn.item(), rel=0.01)
    torch.testing.assert_close(ours.slope, (y - m) / 0.3)
    assert (ours.curvature == likelihood.scale("ggn")).all()


def test_natural_steps_climb_to_the_best_posterior_and_never_fall():
    bound, x, y = problem("classification")
    phi, natural = features(bound, x), NaturalAscent(bound.posterior, bound.likelihood, fit_prior=False)
    values = [natural.climb(phi, y, seed=5, steps=1, enough=0.0) for _ in range(12)]
    assert all(later >= earlier for earlier, later in pairwise(values))
    by_adam, x, y = problem("classification")
    adam = torch.optim.Adam(by_adam.posterior.parameters(), 0.05)
    for seed in range(150):
        adam.zero_grad()
        (-by_adam.log_likelihood(phi, y, generator(seed)) + by_adam.posterior.kl()).backward()
        adam.step()
    ours, theirs = (sum(b.value([(x, y)], generator(s)) for s in range(9)) / 9 for b in (bound, by_adam))
    assert theirs - 0.1 < ours < theirs + 0.5 and values[-1] > values[0]


def test_a_step_that_would_lower_the_bound_is_shortened():
    phi, y = draw(60, UNITS), (draw(60, seed=9) > 0).long()
    natural = NaturalAscent(prior(2, delta=0.01), Categorical(), fit_prior=False)
    natural.posterior.scale.div_(posterior.NARROW)  # back to the prior, which is too wide to see far from
    natural.precision.mul_(posterior.NARROW**2)
    with torch.no_grad():
        state = {name: tensor.clone() for name, tensor in natural.state_dict().items()}
        before, targets, _ = natural._targets(phi, y, 0)
        natural._move(targets, 1.0, 1.0)
        assert natural._targets(phi, y, 0)[0] < before, "the full step must fall, or there is nothing to shorten"
        natural.load_state_dict(state)
    assert natural.climb(phi, y, 0, steps=1, enough=0.0) > before


@pytest.mark.parametrize("delta", [1e-4, 1.0])
def test_three_steps_from_the_narrow_start_are_nearly_all(delta):
    phi, y = 3 * draw(60, UNITS), (draw(60, seed=9) > 0).long()
    natural = NaturalAscent(prior(2, delta), Categorical(), fit_prior=False)
    three, more = (natural.climb(phi, y, 0, steps, enough=0.0) for steps in (3, 10))
    assert three > more - 0.05 * len(phi)


def test_prior_and_noise_are_fitted_on_the_way():
    bound, x, _ = problem()
    phi = features(bound, x)
    y = phi @ (0.2 * draw(UNITS, C, seed=5)) + 0.5 * draw(N, C, seed=6)
    natural = NaturalAscent(bound.posterior, bound.likelihood)
    natural.climb(phi, y, 0, steps=100, enough=0.0)
    delta, sigma2 = levels(bound)
    best = log_evidence(phi, y, delta, sigma2).item()
    for factor in (0.9, 1.1):
        assert log_evidence(phi, y, factor * delta, sigma2).item() < best
        assert log_evidence(phi, y, delta, factor * sigma2).item() < best


def test_more_classes_than_data_and_inputs_without_features_are_fine():
    q, phi = prior(50), draw(3, UNITS)
    NaturalAscent(q, Categorical()).climb(phi, torch.tensor([0, 7, 49]), 0, steps=5, enough=0.0)
    m, v = q.moments(phi)
    assert m.argmax(1).tolist() == [0, 7, 49] and (v > 0).all()
    q, phi = some_posterior(), torch.zeros(2, UNITS, dtype=torch.float64, requires_grad=True)
    m, v = q.moments(phi)
    value = expected_log_prob(Categorical(), m, v, torch.tensor([0, 1]), generator(0)).log_prob
    assert value.item() == pytest.approx(-2 * torch.tensor(3.0).log().item())
    (g,) = torch.autograd.grad(value, phi)
    assert g.isfinite().all()


def test_a_lost_covariance_is_an_error_that_names_the_remedy():
    q = some_posterior()
    with torch.no_grad():
        q.scale[1, 3, 3] = 0.0
    refused(r"no longer positive definite.*posterior='natural'", q.kl, error=RunError)
    with pytest.raises(RunError, match=r"output 1 is not positive definite.*Scale the inputs"):
        cholesky(torch.stack([torch.eye(3), -torch.eye(3)]))


def test_a_precision_that_rounding_made_indefinite_gets_a_little_on_its_diagonal():
    A = (torch.eye(3, dtype=torch.float64) + 3e7 * torch.ones(3, 3, dtype=torch.float64)).float()
    assert torch.linalg.cholesky_ex(A[None])[1].any(), "plain float32 must fail, or there is nothing to help"
    R = cholesky(torch.stack([A, torch.eye(3)]))
    torch.testing.assert_close(R[0] @ R[0].mT, A, rtol=1e-5, atol=1.0)
    assert torch.equal(R[1], torch.eye(3)), "the other outputs are left alone"


@pytest.mark.parametrize("n", [1, 64, 65, 200])
def test_inverse_of_triangles(n):
    R = draw(2, n, n).tril() / n + torch.eye(n, dtype=torch.float64)
    eye = torch.eye(n, dtype=torch.float64).expand(2, n, n)
    torch.testing.assert_close(posterior.inverse_triangular(R) @ R, eye, rtol=1e-9, atol=1e-9)


def test_bad_input():
    refused("at least one output and one feature, and no bias", OutputPosterior, nn.Linear(3, 4))
    refused("positive prior precision; got 0", prior, delta=0.0)
    m, v, label = torch.zeros(1, 3), torch.ones(1, 3), torch.tensor([3])
    refused(r"labels must lie in 0 \.\.\. 2", expected_log_prob, Categorical(), m, v, label, generator(0))
