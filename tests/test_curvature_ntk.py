"""The two kernels: reduced equals exact where nothing is lost, exact equals the naive one for any network."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import evidence_cases as cases
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.curvature.ntk import ExactKernel, ReducedKernel
from augury.evidence.likelihoods import Categorical
from augury.evidence.ntk import NtkBound
from augury.models.batchnorm import swap_batchnorm
from augury.models.small import MLP
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from evidence_cases import DELTA, C, N, averaged, images, labels, on_points, points
from reference.differences import central_difference
from reference.ntk import evidence
from refusal import refused


def compared(model, x, delta, prior):
    bounds = [NtkBound(model, Categorical(), 2, prior=prior, kernel=kernel) for kernel in ("reduced", "exact")]
    values = [bound.objective(x, labels(len(x)), delta, 40, seed=3) for bound in bounds]
    return values, [torch.autograd.grad(v, model.transform.eta, allow_unused=True)[0] for v in values]


CASES = {
    "linear, many copies": (lambda: on_points(MLP([2, C], generator(0)), S=6), points, "tensor", 2),
    "deep linear, many copies": (
        lambda: on_points(nn.Sequential(nn.Linear(2, 4), nn.Linear(4, C)), S=6), points, "layer", 2,
    ),
    "mlp, one copy": (lambda: on_points(MLP([2, 5, C], generator(0)), S=1), points, "tensor", 4),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_reduced_is_exact_where_nothing_is_lost(case):
    make, inputs, prior, L = CASES[case]
    delta = torch.linspace(0.3, 2, L, dtype=torch.float64)
    values, gradients = compared(make(), inputs(), delta, prior)
    torch.testing.assert_close(values[0], values[1], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-8, atol=1e-10)
    assert gradients[0].abs().max() > 1e-3


def test_reduced_differs_where_copies_see_different_slopes():
    values, _ = compared(on_points(), points(), DELTA, "scalar")
    assert 1e-4 < abs(values[0] - values[1]) < 1


class OnePosition(nn.Sequential):
    """Convolutions that fill their input: one position each, in groups, so that reducing loses nothing."""

    def __init__(self):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            super().__init__(
                nn.Conv2d(1, 4, 6), nn.Tanh(), nn.Conv2d(4, 4, 1, groups=2), nn.GroupNorm(2, 4),
                nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(4, C, bias=False),
            )  # fmt: skip


def test_grouped_convolutions_and_norms_agree_with_the_exact_kernel():
    delta = torch.linspace(0.3, 2, 7, dtype=torch.float64)
    values, gradients = compared(averaged(OnePosition(), Affine2d((6, 6)), S=1), images(), delta, "tensor")
    torch.testing.assert_close(values[0], values[1], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-8, atol=1e-10)


class Convolutional(nn.Sequential):
    """A few layers of each covered kind."""

    def __init__(self, seed=0):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            super().__init__(
                nn.Conv2d(1, 4, 3, groups=1), nn.Tanh(), nn.Conv2d(4, 4, 3, groups=2), nn.GroupNorm(2, 4),
                nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(4 * 2 * 2, C),
            )  # fmt: skip


def test_the_exact_kernel_of_a_convolutional_network_is_the_full_laplace_evidence():
    model, x, y = averaged(Convolutional(), Affine2d((6, 6)), S=3), images(6), labels(6)
    value, gradient = cases.full_evidence(model, Categorical(), x, y, DELTA, "scalar")
    bound = NtkBound(model, Categorical(), None, kernel="exact", chunk=4)
    torch.testing.assert_close(bound.objective(x, y, DELTA, 6, 7), value, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(bound.gradient([(x, y)], DELTA, lambda _: 7), gradient, rtol=1e-7, atol=1e-9)


class Tokens(nn.Module):
    """The rows of an image, mixed by a layer that has no Kronecker factors."""

    def __init__(self, kind, dropout=0.0):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.embed = nn.Linear(6, 4)
            self.kind = kind
            self.mix = {
                "attention": lambda: nn.MultiheadAttention(4, 2, dropout=dropout, batch_first=True),
                "encoder": lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=dropout, batch_first=True),
                "instance norm": lambda: nn.InstanceNorm1d(6, affine=True),
                "PReLU": lambda: nn.PReLU(),
                "PReLU of channels": lambda: nn.PReLU(6),
            }[kind]()
            self.head = nn.Linear(4, C)

    def forward(self, x):
        h = self.embed(x[:, 0])
        h = self.mix(h, h, h, need_weights=False)[0] if self.kind == "attention" else self.mix(h)
        return self.head(h.mean(1))


@pytest.mark.parametrize("kind", ["attention", "encoder", "instance norm", "PReLU", "PReLU of channels"])
@pytest.mark.parametrize("training", [True, False])
def test_attention_and_norms_have_the_naive_value_and_its_gradient(kind, training):
    model = averaged(Tokens(kind).train(training), Affine2d((6, 6)), S=3)
    bound = NtkBound(model, Categorical(), None, chunk=2)
    assert isinstance(bound.kernel, ExactKernel)
    x, y, eta = images(5), labels(5), model.transform.eta
    value = bound.objective(x, y, DELTA, 5, 3)
    torch.testing.assert_close(value, evidence(model, Categorical(), x, y, 0.7, 3), rtol=1e-9, atol=1e-9)
    (gradient,) = torch.autograd.grad(value, eta)
    expected = central_difference(lambda: bound.objective(x, y, DELTA, 5, 3, graph=False), eta)
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-6)
    assert gradient.abs().max() > 1e-4


def test_automatic_choice_of_the_kernel():
    assert isinstance(NtkBound(on_points(), Categorical()).kernel, ReducedKernel)
    with pytest.raises(InputError, match="MultiheadAttention"):
        NtkBound(averaged(Tokens("attention"), Affine2d((6, 6))), Categorical(), kernel="reduced")


class Functional(nn.Module):
    """Uses its layer's weight without calling the layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, C)

    def forward(self, x):
        return F.linear(x, self.layer.weight, self.layer.bias)


def test_a_layer_that_is_not_called_falls_back_to_the_exact_kernel():
    model = on_points(Functional(), S=1)
    bound = NtkBound(model, Categorical(), None)
    value = bound.objective(points(), labels(), DELTA, N, 3)
    called = on_points(nn.Sequential(model.net.layer), S=1)
    torch.testing.assert_close(value, NtkBound(called, Categorical(), None).objective(points(), labels(), DELTA, N, 3))
    assert isinstance(bound.kernel, ExactKernel)
    with pytest.raises(InputError, match="not called"):
        NtkBound(model, Categorical(), kernel="reduced").objective(points(), labels(), DELTA, N, 3)


@pytest.mark.parametrize("kernel", ["exact", "reduced"])
def test_frozen_parameters_are_constants(kernel):
    net = MLP([2, 5, C], generator(0))
    net.linear1.weight.requires_grad_(False)
    model, x, y = on_points(net, S=1), points(), labels()
    value = NtkBound(model, Categorical(), None, kernel=kernel).objective(x, y, DELTA, N, 3)
    torch.testing.assert_close(value, evidence(model, Categorical(), x, y, 0.7, 3), rtol=1e-10, atol=1e-10)
    net.requires_grad_(True)
    assert abs(value - evidence(model, Categorical(), x, y, 0.7, 3)) > 1e-2


@pytest.mark.parametrize("kernel", ["exact", "reduced"])
def test_a_large_kernel_in_float32_keeps_its_determinant(kernel):
    """Eigenvalues of 1e8 beside 1: rounding of the Gram matrix in float32 would break the Cholesky factor."""
    delta = torch.tensor([1e-8])
    values = []
    for dtype in (torch.float64, torch.float32):
        model = on_points(MLP([2, 20, C], generator(0))).to(dtype)
        bound = NtkBound(model, Categorical(), None, kernel=kernel)
        values.append(float(bound.objective(points(60).to(dtype), labels(60), delta.to(dtype), 60, 3, graph=False)))
    assert values[1] == pytest.approx(values[0], rel=0.02)


@pytest.mark.parametrize("kernel", ["exact", "reduced"])
def test_batchnorm_in_training_mode_is_explained_and_evaluation_statistics_work(kernel):
    net = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, C))
    model = on_points(net)
    before = net[1].running_mean.clone()
    with pytest.raises(InputError, match="'1' \\(BatchNorm1d\\) couples"):
        NtkBound(model, Categorical(), kernel=kernel).objective(points(), labels(), DELTA, N, 3)
    assert torch.equal(net[1].running_mean, before)
    swapped = on_points(swap_batchnorm(net))
    for usable in (on_points(net.eval()), swapped):
        bound = NtkBound(usable, Categorical(), None, kernel="exact")
        value, _ = cases.full_evidence(usable, Categorical(), points(), labels(), DELTA, "scalar", seed=3)
        torch.testing.assert_close(bound.objective(points(), labels(), DELTA, N, 3), value)


@pytest.mark.parametrize("make", [
    lambda: (nn.Sequential(nn.Linear(2, 5), nn.Dropout(0.1), nn.Linear(5, C)), "'1' \\(Dropout\\)", points),
    lambda: (Tokens("attention", dropout=0.1), "'mix' \\(MultiheadAttention\\)", images),
])  # fmt: skip
def test_dropout_in_training_mode_is_explained(make):
    net, message, inputs = make()
    transform = Affine2d((6, 6)) if inputs is images else AffineCoordinates("affine")
    bound = NtkBound(averaged(net, transform), Categorical())
    refused(message, bound.objective, inputs(), labels(), DELTA, N, 3)
    net.eval()
    assert bound.objective(inputs(), labels(), DELTA, N, 3) == bound.objective(inputs(), labels(), DELTA, N, 3)


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, C))

    def forward(self, x):
        return x @ self.weight if x.sum() > 0 else -x @ self.weight


def test_a_network_that_torch_func_cannot_take_is_explained():
    with pytest.raises(InputError, match=r"torch\.func must be able to differentiate Branching"):
        NtkBound(on_points(Branching()), Categorical()).objective(points(), labels(), DELTA, N, 3)


def test_a_jacobian_too_large_for_memory_is_refused(monkeypatch):
    monkeypatch.setattr("augury.curvature.ntk.LARGEST_JACOBIAN", 100)
    bound = NtkBound(on_points(), Categorical(), kernel="exact")
    refused("12 rows of 33 numbers", bound.objective, points(), labels(), DELTA, N, 3)
