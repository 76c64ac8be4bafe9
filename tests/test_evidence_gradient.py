"""Gradients of the evidence in the widths, the prior and the noise against central differences, end to end."""

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.evidence.laplace import TRACE, Laplace
from curvature_cases import filled
from evidence_cases import batches, data, likelihood, model, precisions, seeds
from reference.differences import central_difference

STRUCTURES = ["kron", "diag", "full"]
H = 3e-6


class Case:
    """An evidence over seven data in batches of four, and its value from scratch."""

    def __init__(self, name, structure, output, regression, prior="layer", positions="reduce", only=None):
        self.model, shape = model(name)
        self.parts = batches(*data(shape, regression), 4)
        self.laplace = Laplace(self.model, likelihood(regression), structure, output, prior, positions, only)
        self.delta = precisions(self.laplace)

    def value(self):
        return self.laplace.log_evidence(self.laplace.fit(self.parts, seeds), self.delta)

    def eta_gradient(self, held=False):
        frozen = self.laplace.preconditioner(self.laplace.fit(self.parts, seeds), self.delta, held)
        (gradient,) = self.laplace.gradient(self.parts, frozen, seeds)
        return gradient

    def closed_form_gradient(self, tensor):
        fit = self.laplace.fit(self.parts, seeds)
        self.delta.requires_grad_()
        (gradient,) = torch.autograd.grad(self.laplace.log_evidence(fit, self.delta), tensor)
        self.delta.requires_grad_(False)
        return gradient

    def check_eta(self):
        expected = central_difference(self.value, self.model.transform.eta, H)
        assert expected.abs().min() > 1e-3  # both widths matter here
        torch.testing.assert_close(self.eta_gradient(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("output", ["ggn", "mc", "ef"])
@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("name", ["points", "images"])
def test_gradient_in_the_widths(name, structure, output, regression):
    Case(name, structure, output, regression).check_eta()


@pytest.mark.parametrize("prior", ["scalar", "tensor"])
@pytest.mark.parametrize("positions", ["reduce", "expand"])
def test_gradient_in_the_widths_of_every_kronecker_option(prior, positions):
    Case("images", "kron", "ggn", False, prior, positions).check_eta()


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("only", [["10"], ["2"], ["0"], ["4", "5", "9"]])
def test_gradient_in_the_widths_of_some_layers_only(structure, only):
    Case("images", structure, "ggn", False, only=only).check_eta()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_gradient_in_the_widths_of_biases_only(structure):
    case = Case("points", structure, "ggn", False)
    for p in case.model.net.parameters():
        p.requires_grad_(p.ndim == 1)
    case.laplace = Laplace(case.model, likelihood(False), structure, "ggn")
    case.delta = precisions(case.laplace)
    case.check_eta()


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("prior", ["scalar", "layer", "tensor"])
@pytest.mark.parametrize("output", ["ggn", "ef"])
def test_gradient_in_the_prior(structure, prior, output):
    case = Case("images", structure, output, regression=True, prior=prior)
    fit = case.laplace.fit(case.parts, seeds)  # it knows nothing of the prior
    expected = central_difference(lambda: case.laplace.log_evidence(fit, case.delta).detach(), case.delta, H)
    torch.testing.assert_close(case.closed_form_gradient(case.delta), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("output", ["ggn", "mc", "ef"])
def test_gradient_in_the_noise(structure, output):
    case = Case("points", structure, output, regression=True)
    log_sigma2 = case.laplace.likelihood.log_sigma2
    expected = central_difference(case.value, log_sigma2, H)
    torch.testing.assert_close(case.closed_form_gradient(log_sigma2), expected, rtol=1e-5, atol=1e-6)


def test_other_seeds_give_another_gradient_and_single_precision_is_close():
    case = Case("points", "kron", "mc", False)
    frozen = case.laplace.preconditioner(case.laplace.fit(case.parts, seeds), case.delta)
    (other,) = case.laplace.gradient(case.parts, frozen, lambda k: 900 + k)
    assert not torch.allclose(other, case.eta_gradient(), rtol=0.01)
    case = Case("images", "kron", "ggn", False)
    exact = case.eta_gradient()
    case.model.float()
    case.parts = [(x.float(), y) for x, y in case.parts]
    torch.testing.assert_close(case.eta_gradient().double(), exact, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("regression", [False, True])
def test_a_gradient_with_sensitivities_held_is_exact_where_they_rest(regression):
    """In a linear network J is the same everywhere, and Lambda of two classes, or of noise, has one number to move."""
    case = Case("points", "kron", "ggn", regression)
    case.model.net = filled(nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 2)), size=0.9)
    case.parts = [(x, y[:, :2] if regression else y.clamp(max=1)) for x, y in case.parts]
    case.laplace = Laplace(case.model, likelihood(regression), "kron", "ggn")
    case.delta = precisions(case.laplace)
    held = case.eta_gradient(held=True)
    torch.testing.assert_close(held, case.eta_gradient(), rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(held, central_difference(case.value, case.model.transform.eta, H), rtol=1e-5, atol=1e-6)


def test_what_multiplies_the_trace_is_the_number_of_weights_that_the_data_determine():
    case = Case("images", "kron", "ggn", False)
    fit = case.laplace.fit(case.parts, seeds)
    held = case.laplace.preconditioner(fit, case.delta, held=True)
    assert {name.rpartition("/")[2] for name in held} == {"A", TRACE}
    blocks = zip(fit.spectrum, case.laplace.structure.delta_of_blocks(case.delta), strict=True)
    gamma = sum(float((h / (h + d)).sum()) for h, d in ((block.eigenvalues(), d) for block, d in blocks))
    with torch.no_grad():
        f = torch.cat([case.model.average(x, generator(seeds(k))) for k, (x, _) in enumerate(case.parts)])
    trace = float((1 - f.softmax(1).square().sum(1)).sum())
    assert float(held[TRACE]) == pytest.approx(gamma / trace, rel=1e-9)


@pytest.mark.parametrize(("structure", "output"), [("diag", "ggn"), ("full", "mc"), ("kron", "ef")])
def test_what_has_no_inputs_apart_or_no_expected_curvature_is_followed_in_full(structure, output):
    case = Case("points", structure, output, False)
    torch.testing.assert_close(case.eta_gradient(held=True), case.eta_gradient(), rtol=0, atol=0)


def sampled_gradients(output, regression, draws, copies=50):
    """Means of `copies` one-column gradients whose views are all the same, and the exact gradient beside them."""
    net, shape = model("points", S=4, sampling="grid")
    x, y = data(shape, regression, N=3)
    exact = Laplace(net, likelihood(regression), "kron", "ggn")
    delta = precisions(exact)
    frozen = exact.preconditioner(exact.fit([(x, y)], seeds), delta)
    sampled = Laplace(net, likelihood(regression), "kron", output)
    many = [(x.repeat(copies, 1), y.repeat(copies, *[1] * (y.ndim - 1)))]  # each datum draws signs of its own
    found = [sampled.gradient(many, frozen, lambda k, seed=seed: seed)[0] / copies for seed in range(draws)]
    return torch.stack(found), exact.gradient([(x, y)], frozen, seeds)[0]


@pytest.mark.parametrize("regression", [False, True])
def test_the_sampled_gradient_is_unbiased(regression):
    sampled, exact = sampled_gradients("mc", regression, draws=30)
    error = sampled.std(0) / len(sampled) ** 0.5
    assert ((sampled.mean(0) - exact).abs() < 4 * error).all()
    assert (error < 0.05 * exact.abs()).any()  # so the line above can fail


def test_widths_at_zero_have_the_same_view_everywhere():
    case = Case("points", "kron", "ggn", False)
    with torch.no_grad():
        case.model.transform.eta.zero_()
    views = case.model.views(case.parts[0][0], generator(0)).unflatten(0, (4, 3))
    torch.testing.assert_close(views, views[:, :1].expand_as(views))
    expected = central_difference(case.value, case.model.transform.eta, H)
    torch.testing.assert_close(case.eta_gradient(), expected, rtol=1e-5, atol=1e-6)
