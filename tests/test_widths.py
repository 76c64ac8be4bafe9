"""Which widths the evidence supports: closed forms in float64, scans of known curves, verdicts, and whole runs."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.core.units import DEGREES, FACTOR, WidthSpec
from augury.data.dataset import Dataset
from augury.evidence.ascent import Evidence
from augury.evidence.elbo import Elbo
from augury.evidence.likelihoods import Categorical, Gaussian
from augury.evidence.ntk import NtkBound
from augury.evidence.posterior import OutputPosterior
from augury.evidence.refit import ElboRefit, Knot, LaplaceRefit, gaussian_evidence, logistic, output_layer, ridge
from augury.methods.learn import learn
from augury.methods.widths import (
    FAR,
    SEVERAL,
    SLIGHT,
    Profile,
    guess,
    level_of,
    profiled,
    supported,
    undecided_below_guess,
    verdict_of,
    widened,
    width_of,
)
from augury.models.orbit import OrbitAverage
from augury.models.shallow import Relu, Rff, ShallowOrbit
from augury.models.small import MLP
from augury.training.learner import Findings, widths_of
from augury.transforms.affine2d import AffineCoordinates
from augury.transforms.compose import Correlated
from augury.transforms.vocabulary import build

ROTATION = WidthSpec("rotation", DEGREES, math.pi)


def exactly(value):
    """A curve as a profile sees it, without noise."""
    return lambda eta: Knot(value(eta), torch.zeros(1))


def normal(y, K):
    return float(torch.distributions.MultivariateNormal(torch.zeros(len(y)).to(y), K).log_prob(y.mT).sum())


def regression(N=30, sampling="centred"):
    """Targets from an orbit-averaged RFF network in float64, and what is needed to average it by hand."""
    net = Rff((2,), 1, generator(0), units=64, sigma=2.0, alpha=3.0).double()
    transform = AffineCoordinates("rotation", sampling).double()
    x = torch.randn(N, 2, generator=generator(1), dtype=torch.float64)
    y = torch.sin(3 * x.norm(dim=1, keepdim=True)) + 0.2 * torch.randn(N, 1, generator=generator(2)).double()
    return net, transform, x, y


def averaged_by_hand(net, x, eta, nodes=400):
    total = torch.zeros(len(x), net.units, dtype=torch.float64)
    for t in (torch.arange(nodes, dtype=torch.float64) + 0.5) * (2 / nodes) - 1:
        c, s = math.cos(float(t) * eta), math.sin(float(t) * eta)
        total += net.features(x @ torch.tensor([[c, s], [-s, c]], dtype=torch.float64))
    return total / nodes


def best_by_search(phi, y):
    """max over delta and sigma of the exact log marginal likelihood, by a grid that is refined."""
    a, b, span = 0.0, -2.0, 4.0
    eye = torch.eye(len(y), dtype=torch.float64)
    for _ in range(14):
        tried = [(a + span * i / 4, b + span * j / 4) for i in range(-4, 5) for j in range(-4, 5)]
        a, b = max(tried, key=lambda p: normal(y, phi @ phi.mT * math.exp(p[0]) + eye * math.exp(p[1])))
        span /= 2
    return normal(y, phi @ phi.mT * math.exp(a) + eye * math.exp(b))


def test_evidence_of_fixed_features_is_the_marginal_likelihood_at_its_best_prior_and_noise():
    net, _, x, y = regression()
    for phi in (net.features(x).detach(), net.features(x).detach()[:, :10]):  # more features than data, and fewer
        assert gaussian_evidence(phi, y) == pytest.approx(best_by_search(phi, y), abs=2e-3)
    two = torch.cat([y, y.flip(0)], 1)
    assert gaussian_evidence(net.features(x).detach(), two) == pytest.approx(
        best_by_search(net.features(x).detach(), two), abs=2e-3
    )


@pytest.mark.parametrize("eta", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("way", ["elbo", "laplace"])
def test_both_refits_reach_the_exact_marginal_likelihood_at_any_width(way, eta):
    net, transform, x, y = regression()
    likelihood = Gaussian(1.0).double()
    if way == "elbo":
        model = ShallowOrbit(net, transform)
        refit = ElboRefit(Elbo(model, OutputPosterior(net.output), likelihood, len(x)), x, y, 0)
    else:
        evidence = Evidence(OrbitAverage(net, transform, 4), len(x), "regression")
        evidence.likelihood.double()
        refit = LaplaceRefit(evidence, x, y, 0)
    with torch.no_grad():
        transform.eta.fill_(eta)
    with torch.no_grad():
        truth = gaussian_evidence(averaged_by_hand(net, x, eta), y)
    assert refit.knot().log_p == pytest.approx(truth, abs=0.1)
    with torch.no_grad():
        transform.eta.fill_(eta + 0.5)
    assert abs(refit.knot().log_p - truth) > 0.5  # another width is another number


@pytest.mark.parametrize("learned", [True, False])
def test_a_prior_that_is_held_in_training_is_held_in_the_profile(learned):
    net, transform, x, _ = regression()
    net.output = nn.Linear(net.units, 2, bias=False).double()
    bound = Elbo(ShallowOrbit(net, transform), OutputPosterior(net.output, 5.0), Categorical(), 30)
    bound.fit_prior = learned
    refit = ElboRefit(bound, x, (x.norm(dim=1) > 1).long(), 0)
    refit.knot()
    assert (refit.delta == pytest.approx(5.0)) == (not learned)


def test_a_first_layer_counts_as_held_if_it_was_trained():
    def bound(net):
        model = ShallowOrbit(net, AffineCoordinates("rotation"))
        return Elbo(model, OutputPosterior(net.output), Categorical(), 20)

    x, relu = torch.randn(20, 2, generator=generator(0)), Relu((2,), 2, generator(0), units=8)
    y = (x[:, 0] > 0).long()
    assert ElboRefit(bound(relu), x, y, 0).held
    assert not ElboRefit(bound(Rff((2,), 2, generator(0), units=8)), x, y, 0).held
    relu.hidden.requires_grad_(False)  # frozen: trained for no width
    assert not ElboRefit(bound(relu), x, y, 0).held


def test_ridge_is_the_minimum_on_both_sides_of_n_equals_f():
    for N, F in ((20, 5), (5, 20)):
        phi, y = (torch.randn(N, d, generator=generator(d), dtype=torch.float64) for d in (F, 2))
        pull = torch.linspace(0.1, 2, F, dtype=torch.float64)
        W = ridge(phi, y, pull)
        gradient = (phi @ W.mT - y).mT @ phi + W * pull
        assert gradient.abs().max() < 1e-10


def test_logistic_is_a_minimum_wherever_it_starts():
    phi = torch.randn(40, 6, generator=generator(0), dtype=torch.float64) * torch.logspace(-2, 1, 6).double()
    y, pull = torch.arange(40) % 3, torch.full((6,), 0.3, dtype=torch.float64)
    found = [logistic(phi, y, pull, torch.full((3, 6), start, dtype=torch.float64)) for start in (0.0, 1.0)]
    p = (phi @ found[0].mT).softmax(1) - nn.functional.one_hot(y, 3)
    assert (p.mT @ phi + pull * found[0]).abs().max() < 1e-3
    assert torch.allclose(*found, atol=1e-3)


def test_the_last_layer_is_refitted_only_where_its_outputs_are_the_networks():
    def found(net):
        return output_layer(Evidence(OrbitAverage(net, AffineCoordinates("rotation"), 2), 5), torch.zeros(1, 2))

    ends, goes_on = MLP([2, 4, 3], generator(0)), nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    assert isinstance(found(ends), nn.Linear) and found(goes_on) is None


@pytest.mark.parametrize("here", [0.0, 0.3, 1.0, 3.0])
def test_profile_of_a_parabola_is_its_interval_wherever_it_starts(here):
    found = profiled(exactly(lambda v: -12.5 * (v - 1.0) ** 2), here, math.pi)
    assert found.interval() == pytest.approx((1 - 1.96 / 5, 1 + 1.96 / 5), abs=0.01)
    assert found.best == pytest.approx(1.0, abs=0.05)


def test_a_width_that_cannot_be_negative_ends_at_zero_without_looking_below():
    asked = []
    found = profiled(exactly(lambda v: asked.append(v) or -30.0 * v), 0.0, 0.5)  # a kink: no parabola at 0
    assert min(asked) == 0.0 and found.best == 0.0
    assert found.interval() == pytest.approx((0.0, 1.92 / 30), abs=0.005)


def test_a_better_optimum_beyond_a_valley_is_seen_and_a_hopeless_range_is_not_walked():
    two = profiled(exactly(lambda v: max(-50 * (v - 1.0) ** 2, 6 - 50 * (v - 2.2) ** 2, -9.0)), 1.0, math.pi)
    assert two.best == pytest.approx(2.2, abs=0.1) and two.interval()[0] > 1.5
    steep = profiled(exactly(lambda v: -1000.0 * v), 0.0, math.pi)
    assert max(steep.knots) < 0.3 and 1000 * sorted(steep.knots)[-1] > FAR


def test_where_layers_below_are_held_a_scan_ends_at_the_first_valley():
    def two(v):
        return max(-50 * (v - 1.0) ** 2, 6 - 50 * (v - 2.2) ** 2, -9.0)

    near = profiled(exactly(two), 1.0, math.pi, beyond=False)
    assert near.best == pytest.approx(1.0, abs=0.05) and near.interval() == pytest.approx((0.8, 1.2), abs=0.03)


def test_two_modes_of_equal_support_are_both_in_the_interval():
    low, high = profiled(exactly(lambda v: max(-50 * (v - 1) ** 2, -1 - 50 * (v - 2) ** 2)), 1.0, math.pi).interval()
    assert low == pytest.approx(0.8, abs=0.03) and high == pytest.approx(2.14, abs=0.03)


def test_evidence_that_falls_nowhere_leaves_everything_open():
    assert profiled(exactly(lambda v: 0.0), 0.3, math.pi).interval() == (0.0, math.pi)
    assert profiled(exactly(lambda v: 0.0), 0.3, math.inf).interval() == (0.0, math.inf)


def test_noise_of_the_views_widens_the_interval_as_data_would():
    # l from N data, its slope blurred by as much variance as its curvature: the interval of N / 2 data.
    P = 25.0
    noisy = profiled(lambda v: Knot(-P / 2 * (v - 1) ** 2, torch.tensor([math.sqrt(P) * (v - 1)])), 1.0, math.pi)
    reach = 1.96 * math.sqrt(2 / P)
    assert noisy.interval() == pytest.approx((1 - reach, 1 + reach), abs=0.02)


@pytest.mark.parametrize(
    ("low", "high", "slight", "verdict"),
    [
        (0.2, 0.5, SLIGHT, "invariant"),
        (0.0, 0.09, SLIGHT, "not invariant"),
        (0.0, 0.5, SLIGHT, "undecided"),
        (0.2, 0.5, 0.3, "undecided"),
        (0.2, 0.5, 0.5, "not invariant"),
    ],
)
def test_verdict_follows_the_interval_and_what_counts_as_slight(low, high, slight, verdict):
    assert verdict_of(low, high, slight) == verdict


def test_verdicts_on_several_widths_hold_together():
    def wide(v):
        return -12.5 * (v - 1.0) ** 2

    found = profiled(exactly(wide), 1.0, math.pi, cost=SEVERAL, beyond=False, sure=level_of(6))
    assert level_of(1) == 1.96 and level_of(6) == pytest.approx(2.638, abs=1e-3)
    reach = level_of(6) / 5
    assert found.interval(found.sure) == pytest.approx((1 - reach, 1 + reach), abs=0.03)
    assert found.interval() == pytest.approx((1 - 1.96 / 5, 1 + 1.96 / 5), abs=0.03)


def test_where_training_ended_is_inside_with_its_noise():
    assert widened(0.8, 1.2, 1.0, 1.0, 0.15, math.pi) == pytest.approx((0.75, 1.25))
    assert widened(0.8, 1.2, 1.5, 1.5, 0.15, math.pi) == pytest.approx((1.2 - math.hypot(0.4, 0.15), 1.65))
    assert widened(2.5, 2.9, 3.1, 3.1, 0.15, math.pi)[1] == math.pi and widened(0.2, 0.3, 0.1, 0.1, 0.2, 1.0)[0] == 0


def test_a_width_without_an_end_has_no_upper_number():
    width = width_of(WidthSpec("scale_x", FACTOR), 0.3, 0.0, math.inf, "undecided")
    assert (width.low, width.high, width.verdict) == (1.0, None, "undecided")


def drawn(eta, N=60):
    """Regression data from the averaged network itself."""
    net, _, x, _ = regression(N)
    w = torch.randn(net.units, 1, generator=generator(5), dtype=torch.float64)
    return (averaged_by_hand(net, x, eta, 64) @ w + 0.3 * torch.randn(N, 1, generator=generator(6)).double()).detach()


def test_an_estimate_outside_the_interval_moves_and_says_so():
    net, transform, x, _ = regression(60)
    y = drawn(1.2)
    evidence = Evidence(OrbitAverage(net, transform, 4), len(x), "regression")
    evidence.likelihood.double()
    found = supported(LaplaceRefit(evidence, x, y, 0), {})
    width = found.widths["rotation"]
    assert width.low <= math.degrees(1.2) <= width.high and width.verdict == "invariant"
    assert width.low <= width.value <= width.high
    assert transform.describe()["rotation"] == pytest.approx(width.value)
    assert "rotation moved from 0 to" in found.notes[0]
    with torch.no_grad():  # the model was left refitted: its outputs are those of a posterior mean
        f = evidence.model.average(x, generator(0), 64)
    assert (y - f).square().mean() < 0.5 * y.var()


def test_widths_that_may_be_correlated_and_one_way_widths_have_intervals_too():
    x = torch.rand(20, 1, 8, 8, generator=generator(0))
    data = Dataset(x, torch.arange(20) % 2, x[:0], torch.zeros(0, dtype=torch.int64), task="classification")
    for generators in (("flip_x", "blur"), ("brightness",)):
        found = learn(data, "mlp5", "lila", generators=generators, epochs=2, samples=2, samples_eval=2)
        for width in found.invariance.widths.values():
            assert width.low is not None and width.low <= width.value <= (width.high or math.inf)
    transform = Correlated(build(("scale_x", "scale_y"), "image", (1, 8, 8)))
    found = learn(data, "mlp5", "lila", transform=transform, epochs=2, samples=2, samples_eval=2)
    assert all(w.low is not None for w in found.invariance.widths.values())


def test_slight_of_a_width_that_is_not_learned_is_an_error():
    x = torch.rand(20, 2, generator=generator(0))
    data = Dataset(x, torch.arange(20) % 2, x[:0], torch.zeros(0, dtype=torch.int64), kind="coordinates")
    with pytest.raises(InputError, match="Did you mean 'rotation'"):
        learn(data, method="lila", generators=("rotation",), slight={"rotatoin": 5.0})


def test_a_guess_of_classes_knows_their_frequencies():
    assert guess(torch.tensor([0, 1, 2, 3])) == pytest.approx(-4 * math.log(4))
    assert guess(torch.tensor([7, 7, 7, 2])) == pytest.approx(3 * math.log(3 / 4) + math.log(1 / 4))
    assert guess(torch.zeros(5, dtype=torch.int64)) == 0


def test_a_guess_of_numbers_is_a_gaussian_about_their_mean():
    y = torch.randn(50, 2, generator=generator(0), dtype=torch.float64) * torch.tensor([2.0, 0.1]) + 3
    normal = torch.distributions.Normal(y.mean(0), y.std(0, correction=0))
    assert guess(y) == pytest.approx(float(normal.log_prob(y).sum()))
    assert math.isfinite(guess(torch.ones(5, 1)))


@pytest.mark.parametrize(("value", "decided"), [(-2.0, True), (-4 * math.log(2), False), (-9.0, False)])
def test_below_a_guess_no_width_is_decided_and_a_note_says_so(value, decided):
    transform, y = build("rotation", "image", (1, 8, 8)), torch.tensor([0, 1, 0, 1])
    found = Findings(widths_of(transform, "invariant"), value)
    after = undecided_below_guess(found, y)
    if decided:
        assert after is found
        return
    assert {w.verdict for w in after.widths.values()} == {"undecided"}
    (note,) = after.notes
    less = -math.log(2) - value / 4
    assert (f" ({less:.2f} nats per input less)" in note) == (less > 0) and "0.00 nats" not in note and "doctor" in note


@pytest.mark.parametrize("method", [("lila", "mlp5"), ("invariant_weights", "rff_256")], ids=lambda m: m[0])
def test_noise_says_nothing_of_invariances(method):
    rng = generator(0)
    x, y = torch.rand(40, 1, 8, 8, generator=rng), torch.randint(4, (40,), generator=rng)
    data = Dataset(x, y, x[:0], y[:0], task="classification", source="noise")
    found = learn(data, method[1], method[0], epochs=3, samples=2, samples_eval=2, batch=20).invariance
    assert {w.verdict for w in found.widths.values()} == {"undecided"}


def test_the_reduced_kernel_is_no_bound_on_the_evidence_with_exact_jacobians():
    """Inputs and gradients of the two copies cancel, each by itself; their products do not."""
    net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2)).double()
    transform = AffineCoordinates("rotation", "grid").double()
    transform.set_widths({"rotation": 120.0})
    model = OrbitAverage(net, transform, samples=4)
    x, y = torch.randn(8, 2, generator=generator(3), dtype=torch.float64), torch.arange(8) % 2
    delta = torch.tensor([0.7], dtype=torch.float64)
    values = {
        kernel: float(
            NtkBound(model, Categorical(), outputs_per_group=None, kernel=kernel)
            .lower_bound([(x, y)], delta, lambda k: 7)
            .detach()
        )
        for kernel in ("exact", "reduced")
    }
    assert values["reduced"] > values["exact"]


def test_terms_that_vary_more_than_a_true_model_lets_them_widen_the_interval():
    """Curvature P, but per-datum scores with the variance 4 P: the sandwich interval is twice as wide."""
    P, scores = 25.0, torch.tensor([1.0, -1.0], dtype=torch.float64)
    true, wrong = (
        profiled(
            lambda v, f=factor: Knot(-P / 2 * (v - 1) ** 2, torch.zeros(2), scores * math.sqrt(f * P / 2) * (v - 1)),
            1.0,
            math.pi,
        ).interval()
        for factor in (1.0, 4.0)
    )
    assert true == pytest.approx((1 - 1.96 / 5, 1 + 1.96 / 5), abs=0.01)
    assert wrong == pytest.approx((1 - 2 * 1.96 / 5, 1 + 2 * 1.96 / 5), abs=0.03)


def test_a_sample_that_is_scaled_up_has_the_interval_of_its_size():
    """A quarter of the data of a true model, scaled up: l is four times as steep, the interval twice as wide as l's."""
    P, scores = 25.0, torch.tensor([1.0, -1.0], dtype=torch.float64)

    def knot(v, N):
        return Knot(-P / 2 * (v - 1) ** 2, torch.zeros(2), scores * math.sqrt(P / N) * (v - 1), N)

    reach = {N: profiled(lambda v, N=N: knot(v, N), 1.0, math.pi).interval()[1] - 1 for N in (2, 8)}
    assert reach[2] == pytest.approx(1.96 / 5, abs=0.01)
    assert reach[8] == pytest.approx(2 * 1.96 / 5, abs=0.03)


def test_the_noise_of_a_sampled_log_determinant_widens_the_interval():
    """Five groups whose mean has the slope's own variance, twice that for their few degrees of freedom: thrice it."""
    P, spread = 25.0, torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0], dtype=torch.float64) / 2.5**0.5

    def knot(v, noise):
        groups = noise * math.sqrt(5 * P) * spread * (v - 1)  # the mean of five has a fifth of their variance
        return Knot(-P / 2 * (v - 1) ** 2, torch.zeros(1), by_group=groups)

    reach = {noise: profiled(lambda v, r=noise: knot(v, r), 1.0, math.pi).interval()[1] - 1 for noise in (0, 1)}
    assert reach[0] == pytest.approx(1.96 / 5, abs=0.01)
    assert reach[1] == pytest.approx(3**0.5 * 1.96 / 5, abs=0.03)


def test_a_log_determinant_of_all_data_has_no_noise_and_of_a_sample_that_of_its_groups(monkeypatch):
    x = torch.randn(30, 2, generator=generator(1)).double()
    model = OrbitAverage(MLP([2, 4, 3], generator(0)).double(), AffineCoordinates("rotation").double(), 2)
    refit = LaplaceRefit(Evidence(model, 30), x, torch.arange(30) % 3, 0)
    value, groups = refit._of_joint_weights()
    assert len(groups) == 10 and not groups.any()
    monkeypatch.setattr("augury.evidence.refit.CURVED", 20)
    sampled, groups = refit._of_joint_weights()
    assert len(groups) == 10 and groups.var() > 0 and sampled != value


def test_a_last_layer_has_fitted_as_many_numbers_as_the_trace_of_its_ridge():
    """Of numbers tr (H + P)^-1 H is exact; nothing is fitted too well by all data."""
    net = MLP([2, 4, 3], generator(0)).double()
    x, y = torch.randn(30, 2, generator=generator(1)).double(), torch.randn(30, 3, generator=generator(2)).double()
    model = OrbitAverage(net, AffineCoordinates("rotation").double(), 2)
    refit = LaplaceRefit(Evidence(model, 30, "regression"), x, y, 0)
    phi, pull = refit._features(x, 4).mean(0), refit._pull(refit.head, 5).double()
    assert refit._fitted(phi, refit._f(phi)) == 0.0
    refit.share = 0.5
    H = phi.mT @ phi * refit.evidence.likelihood.scale("ggn").detach()
    trace = 3 * torch.linalg.solve(H + torch.diag(pull / 2), H).trace()
    assert refit._fitted(phi, refit._f(phi)) == pytest.approx(float(trace))


def test_a_width_that_is_surely_slight_costs_two_knots_and_others_are_refined():
    asked = []
    found = profiled(exactly(lambda v: asked.append(v) or -500.0 * v), 0.0, math.pi, SLIGHT, SEVERAL)
    assert asked == [0.0, SLIGHT] and found.interval()[1] < SLIGHT
    asked.clear()
    profiled(exactly(lambda v: asked.append(v) or -500.0 * (v - 0.5) ** 2), 0.5, math.pi, SLIGHT, SEVERAL)
    assert len(asked) == 4 and asked[2] < asked[3] < asked[1]


def test_the_best_knot_is_in_the_interval_where_the_interpolation_rises_above_it():
    knots = {0.0: 0.0, 0.075: -13.5, 0.1: -31.0, 0.192: -104.0}
    found = Profile({eta: Knot(value, torch.zeros(1)) for eta, value in knots.items()}, 1.0)
    assert found.interval()[0] == 0.0


def test_a_best_width_at_its_bound_has_an_interval_below_it():
    low, high = profiled(exactly(lambda v: 100.0 * v), 1.7, math.pi, SLIGHT, SEVERAL).interval()
    assert high == math.pi and low == pytest.approx(math.pi - 1.92 / 100, abs=0.02) and low < high


def test_widths_share_the_evidence_at_the_values_they_have(monkeypatch):
    x = torch.rand(20, 1, 8, 8, generator=generator(0))
    data = Dataset(x, torch.arange(20) % 2, x[:0], torch.zeros(0, dtype=torch.int64), task="classification")
    seen, knot = [], LaplaceRefit.knot
    monkeypatch.setattr(
        LaplaceRefit,
        "knot",
        lambda self: (
            seen.append(tuple(self.model.transform.describe().values()))
            or replace(found := knot(self), log_p=found.log_p + 1000)
        ),
    )
    learn(data, "mlp5", "lila", generators=("rotation", "scale_x"), epochs=2, samples=2, samples_eval=2)
    assert len(seen) == len(set(seen)) > 4


def test_a_deep_network_takes_a_sample_and_all_data_where_its_last_layer_settles(monkeypatch):
    monkeypatch.setattr("augury.evidence.refit.DEEP", (12, 20))
    net = MLP([2, 4, 3], generator(0)).double()
    x, y = torch.randn(30, 2, generator=generator(1)).double(), torch.arange(30) % 3
    refit = LaplaceRefit(Evidence(OrbitAverage(net, AffineCoordinates("rotation").double(), 2), 30), x, y, 0)
    assert refit.knot().N == 30 and len(refit.knot().terms) == 12
    refit.settle()
    phi, W = refit._features(x, refit.model.samples_eval).mean(0), refit.head.weight.detach()
    p = (refit._f(phi).softmax(1) - nn.functional.one_hot(y, 3)).mT @ phi[:, :-1]
    assert (p + float(refit.evidence.delta) * W).abs().max() < 1e-3


def test_a_model_that_trains_on_one_view_is_profiled_with_several():
    """One centred view is the input itself, whatever the width."""
    net = MLP([2, 6, 2], generator(0))
    model = OrbitAverage(net, AffineCoordinates(("rotation", "scale_x"), "centred"), samples=1)
    x = torch.randn(20, 2, generator=generator(0))
    refit = LaplaceRefit(Evidence(model, N=20), x, (x[:, 0] > 0).long(), 0)
    values = []
    for degrees in (0.0, 150.0):
        model.transform.set_widths({"rotation": degrees})
        values.append(refit.knot().log_p)
    assert refit.views >= 8 and abs(values[0] - values[1]) > 0.1


def test_a_network_whose_layers_below_are_held_is_invariant_from_half_as_much_again_as_is_slight(monkeypatch):
    """An interval of 8 to 24 degrees, where 6 are slight; a limit that was given counts as it is."""
    net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))
    model = OrbitAverage(net, AffineCoordinates("rotation"))
    x = torch.randn(20, 2, generator=generator(0))
    refit = LaplaceRefit(Evidence(model, N=20), x, (x[:, 0] > 0).long(), 0)

    def knot():
        away = (model.transform.describe()["rotation"] - 16) / 8 * 1.96
        return Knot(1000 - away**2 / 2, torch.zeros(20))

    monkeypatch.setattr(refit, "knot", knot)
    verdicts = []
    for held, slight in ((True, {}), (False, {}), (True, {"rotation": 6.0})):
        model.transform.set_widths({"rotation": 16.0})
        refit.held = held
        width = supported(refit, slight).widths["rotation"]
        assert width.low == pytest.approx(8, abs=0.3) and width.high == pytest.approx(24, abs=0.3)
        verdicts.append(width.verdict)
    assert verdicts == ["undecided", "invariant", "invariant"]


def test_a_far_better_width_is_reported_but_not_believed_if_the_layers_below_are_held(monkeypatch):
    net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))
    model = OrbitAverage(net, AffineCoordinates("rotation"))
    model.transform.set_widths({"rotation": 20.0})
    x = torch.randn(20, 2, generator=generator(0))
    refit = LaplaceRefit(Evidence(model, N=20), x, (x[:, 0] > 0).long(), 0)

    def knot():  # a parabola about 150 degrees
        log_p = -50 * (math.radians(model.transform.describe()["rotation"]) - math.radians(150)) ** 2
        return Knot(1000 + log_p, torch.zeros(20))

    monkeypatch.setattr(refit, "knot", knot)
    found = supported(refit, {})
    width = found.widths["rotation"]
    assert width.value == pytest.approx(20, abs=0.1) and width.low == pytest.approx(20, abs=0.1)
    assert width.high > 150 and "--width rotation=15" in found.notes[0]
    refit.held = False
    assert supported(refit, {}).widths["rotation"].value == pytest.approx(150, abs=5)
