"""Each method against its own equation, written out by hand, and what it must not touch."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from augury.config.learn import METHOD_DEFAULTS, LearnConfig
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.methods.augerino import Augerino
from augury.methods.fixed_transform import Augmented
from augury.methods.plain import Plain
from augury.methods.registry import METHODS, build
from augury.models.networks import build as build_net
from augury.models.orbit import OrbitAverage
from augury.training.batches import Batches
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from training_doubles import coordinates, small_net

DATA = coordinates(24)
X, Y = DATA.x_train[:6], DATA.y_train[:6]
BATCHES = Batches(DATA.x_train, DATA.y_train, 8, torch.device("cpu"))


def rotation(degrees: float = 0.0) -> AffineCoordinates:
    transform = AffineCoordinates("affine")
    transform.set_widths({"rotation": degrees})
    return transform


def test_every_method_has_a_row_and_defaults():
    assert METHODS.keys() == METHOD_DEFAULTS.keys()


def test_plain_takes_an_adam_step_on_the_bare_loss_and_leaves_frozen_layers():
    net, twin = small_net(), small_net()
    config = LearnConfig.for_method("plain", rate=0.01, weight_decay=0.1, evidence="none")
    learner = Plain(net, rotation(30.0), config, "classification", 24)
    loss = learner.train_step(X, Y, generator(0))
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.01, weight_decay=0.1)
    expected = F.cross_entropy(twin(X), Y)
    expected.backward()
    optimizer.step()
    assert loss == pytest.approx(expected.item())
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), twin.parameters(), strict=True))
    assert learner.model is net and learner.transform is None
    net = small_net()
    net[0].requires_grad_(False)
    before = net[0].weight.clone()
    Plain(net, None, LearnConfig.for_method("plain"), "classification", 24).train_step(X, Y, generator(0))
    assert torch.equal(net[0].weight, before)


def test_plain_says_zero_of_every_width_in_its_unit():
    learner = Plain(small_net(), rotation(30.0), LearnConfig.for_method("plain"), "classification", 24)
    widths = learner.conclude(BATCHES, generator(0)).widths
    assert widths["rotation"].value == 0.0 and widths["scale_x"].value == 1.0
    assert {w.verdict for w in widths.values()} == {"given"}


def test_augmented_trains_the_orbit_average_and_leaves_the_widths():
    net, twin, transform = small_net(), small_net(), rotation(30.0)
    config = LearnConfig.for_method("augmented", samples=3, rate=0.01, weight_decay=0.0)
    learner = Augmented(net, transform, config, "classification", 24)
    loss = learner.train_step(X, Y, generator(5))
    views = rotation(30.0)(X, 3, generator(5))
    mean = torch.stack([twin(views[:, s]) for s in range(3)]).mean(0)
    assert loss == pytest.approx(F.cross_entropy(mean, Y).item(), rel=1e-6)
    assert transform.describe()["rotation"] == pytest.approx(30.0)
    assert not torch.equal(net[0].weight, twin[0].weight)
    assert learner.conclude(BATCHES, generator(0)).widths["rotation"].verdict == "given"


def test_what_methods_need_is_said():
    config = LearnConfig.for_method("augmented")
    with pytest.raises(InputError, match=r"at least one width above zero.*--width rotation=30"):
        Augmented(small_net(), rotation(), config, "classification", 24)
    with pytest.raises(InputError, match="method 'plain'"):
        build(small_net(), None, LearnConfig.for_method("augerino"), "classification", 24)
    assert Affine2d.kind == "image"


def test_augerino_descends_the_papers_objective_in_weights_and_widths():
    net, twin, transform = small_net(), small_net(), rotation(30.0)
    config = LearnConfig.for_method("augerino", samples=3)
    learner = Augerino(net, transform, config, "classification", 24)
    learner.train_step(X, Y, generator(5))
    other = rotation(30.0)
    mean = twin(other(X, 3, generator(5)).flatten(0, 1)).unflatten(0, (6, 3)).mean(1)
    (F.cross_entropy(mean, Y) - 0.01 * other.eta.square().sum().sqrt()).backward()
    assert torch.allclose(transform.eta.grad, other.eta.grad, rtol=1e-5, atol=1e-7)
    weights = torch.optim.Adam(twin.parameters(), lr=config.rate, weight_decay=1e-4)
    widths = torch.optim.Adam([other.eta], lr=config.eta_rate)
    weights.step(), widths.step()
    assert torch.allclose(transform.eta, other.eta, atol=1e-7)
    assert torch.allclose(net[0].weight, twin[0].weight, atol=1e-7)


def test_augerino_starts_from_zero_without_nan_and_never_passes_half_a_turn():
    transform = rotation()
    learner = Augerino(small_net(), transform, LearnConfig.for_method("augerino"), "classification", 24)
    for step in range(3):
        assert math.isfinite(learner.train_step(X, Y, generator(step)))
    assert transform.eta.isfinite().all() and transform.eta.any()
    transform = rotation(179.9)
    config = LearnConfig.for_method("augerino", eta_rate=0.5)
    learner = Augerino(small_net(), transform, config, "classification", 24)
    for step in range(5):
        learner.train_step(X, Y, generator(step))
        assert transform.describe()["rotation"] <= 180.0 + 1e-4


def test_regression_descends_the_mean_squared_error():
    net, y = nn.Linear(2, 3), torch.randn(6, 3, generator=generator(0))
    config = LearnConfig.for_method("augerino", samples=2)
    loss = Augerino(net, rotation(), config, "regression", 24)
    before = nn.functional.mse_loss(net(X), y).item()  # all widths zero: the orbit is the input itself
    assert loss.train_step(X, y, generator(0)) == pytest.approx(before, rel=1e-5)


def test_fixup_scalars_learn_at_a_tenth_under_sgd():
    net = build_net("resnet_8_8", (1, 8, 8), 10, generator(0))
    config = LearnConfig.for_method("plain", model="resnet_8_8", optimizer="sgd", rate=0.1)
    learner = build(net, None, config, "classification", 24)
    assert isinstance(learner.weights, torch.optim.SGD)
    groups = learner.weights.param_groups
    assert [group["lr"] for group in groups] == pytest.approx([0.1, 0.01])
    assert all(p.numel() == 1 for p in groups[1]["params"])
    assert sum(p.numel() for g in groups for p in g["params"]) == sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"weight_tied", "invariant_weights"}))  # which are choosy
def test_a_learner_comes_from_the_table(method):
    config = LearnConfig.for_method(method, samples=2, samples_eval=5)
    learner = build(small_net(), rotation(10.0), config, "classification", 24, X[:2])
    assert learner.optimizers() and learner.schedules()
    if isinstance(learner.model, OrbitAverage):
        assert (learner.model.samples, learner.model.samples_eval) == (2, 5)
    else:
        assert method in ("plain", "data_augmented", "regularised")
