"""Method invariant_weights: its steps against the equations, its runs from end to end, and what it refuses."""

import json
import math

import pytest
import torch
from torch import nn

from augury.config.learn import LearnConfig
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.data.variants import toy
from augury.methods.invariant_weights import InvariantWeights
from augury.methods.learn import learn
from augury.methods.prepare import prepare
from augury.models.shallow import Relu, Rff, ShallowOrbit
from augury.training.batches import Batches
from augury.training.learner import Findings, widths_of
from augury.training.saved_model import load_model
from augury.transforms.affine2d import AffineCoordinates
from refusal import refused
from training_doubles import KillAt, Killed, coordinates, same_bits, without_time

UNITS = 30
DATA = coordinates(24)
BATCHES = Batches(DATA.x_train, DATA.y_train, 8, torch.device("cpu"))
QUICK = {"epochs": 4, "batch": 12, "samples": 3, "samples_eval": 3, "settle_window": 0}


def net(kind=Rff, outputs: int = 2, shape=(2,)) -> nn.Module:
    return kind(shape, outputs, generator(0), units=UNITS)


def learner(kind=Rff, degrees: float = 30.0, noise: str = "grid", **settings) -> InvariantWeights:
    transform = AffineCoordinates("rotation", noise)
    transform.set_widths({"rotation": degrees})
    config = LearnConfig.for_method("invariant-weights", **{"samples": 5, "samples_eval": 5, **settings})
    return InvariantWeights(net(kind), transform, config, "classification", 24)


def one_epoch(method: InvariantWeights, epoch: int, seed: int = 0) -> dict[str, float]:
    rng = generator(seed)
    for x, y in BATCHES(rng):
        method.train_step(x, y, rng)
    return method.end_epoch(BATCHES, epoch, rng)


def images(n: int = 24, size: int = 8) -> Dataset:
    x = torch.rand(2 * n, 1, size, size, generator=generator(0))
    y = torch.arange(2 * n) % 3
    return Dataset(x[:n], y[:n], x[n:], y[n:], planted={"rotation": 180.0}, source="noise")


def test_widths_rest_in_the_first_epochs_and_in_the_last():
    method = learner(burn_in=2, epochs=4)
    widths = []
    for epoch in range(1, 5):
        one_epoch(method, epoch)
        widths.append(method.transform.describe()["rotation"])
    assert widths[0] == widths[1] == pytest.approx(30.0)
    assert abs(widths[2] - 30.0) == pytest.approx(math.degrees(method.config.eta_rate), rel=1e-5)
    assert widths[3] == widths[2]


@pytest.mark.parametrize("noise", ["grid", "stratified"])
def test_the_first_step_goes_up_the_bound_on_the_views_that_q_knows(noise):
    method = learner(burn_in=0, epochs=9, degrees=25.0, noise=noise, evidence_images=24)
    rng = generator(0)
    for x, y in BATCHES(rng):
        method.train_step(x, y, rng)
    views = list(method.views)
    method.end_epoch(BATCHES, 1, rng)
    stored, eta = method.transform.eta.grad.item(), method.transform.eta
    assert math.copysign(1.0, eta.item() - math.radians(25.0)) == -math.copysign(1.0, stored)

    def bound(degrees: float) -> float:
        method.transform.set_widths({"rotation": degrees})
        phi = torch.cat([method.model.mean_features(x, eps) for x, _, eps, _ in views])
        y = torch.cat([y for _, y, _, _ in views])
        return method.bound.log_likelihood(phi, y, generator(2), draws=2000).item()

    slope = (bound(25.5) - bound(24.5)) / math.radians(1.0)
    assert stored == pytest.approx(-slope, rel=0.2, abs=0.3) and abs(slope) > 1.0


def test_the_bound_rises_while_the_posterior_is_fitted():
    method = learner(eta_rate=0.0, epochs=9)
    bounds = [one_epoch(method, epoch)["log_evidence"] for epoch in range(1, 5)]
    assert bounds[-1] > bounds[0] and max(bounds) - bounds[-1] < 0.5


def test_fixed_features_are_computed_once_per_epoch_and_then_dropped():
    method = learner()
    rng = generator(0)
    for x, y in BATCHES(rng):
        method.train_step(x, y, rng)
    assert sum(map(len, method.features)) == 24
    assert not any(phi.requires_grad for phi in method.features)
    method.end_epoch(BATCHES, 1, rng)
    assert method.features == [] and method.views == []


def test_the_first_layer_of_relu_learns_and_that_of_rff_stays():
    for kind, stays in ((Rff, True), (Relu, False)):
        method = learner(kind, rate=0.01)
        before = method.model.net.filters.detach().clone()
        one_epoch(method, 1)
        assert torch.equal(method.model.net.filters.detach(), before) is stays


@pytest.mark.parametrize("posterior", ["adam", "point"])
def test_adam_and_maximum_likelihood_take_the_step_of_their_loss(posterior):
    method, twin = learner(posterior=posterior, rate=0.01), learner(posterior=posterior, rate=0.01)
    x, y = DATA.x_train[:6], DATA.y_train[:6]
    method.train_step(x, y, generator(5))
    rng = generator(5)
    phi = twin.model.mean_features(x, twin._noise(x, 5, rng))
    if posterior == "point":
        objective = nn.functional.cross_entropy(twin.model.net.output(phi), y)
    else:
        kl = twin.bound.posterior.kl()
        objective = (24 / 6 * -twin.bound.log_likelihood(phi, y, rng) + kl) / 24
    adam = torch.optim.Adam(twin.trained, 0.01)
    objective.backward()
    adam.step()
    for ours, theirs in zip(method.trained, twin.trained, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_maximum_likelihood_has_no_bound_and_fixed_widths_have_one():
    result = learn(DATA, net(), "invariant-weights", posterior="point", **QUICK)
    assert result.invariance.log_evidence is None
    assert result.invariance.widths["rotation"].verdict == "undecided"
    assert "log_likelihood" in result.metrics[-1]
    result = learn(DATA, net(), "invariant-weights", widths={"rotation": 40.0}, eta_rate=0.0, **QUICK)
    width = result.invariance.widths["rotation"]
    assert (width.value, width.verdict) == (pytest.approx(40.0), "given")
    assert result.invariance.log_evidence < 0


@pytest.mark.parametrize("seen", [24, 12])
def test_a_profile_of_some_of_the_data_leaves_the_bound_to_the_posterior_that_was_fitted_where_it_moved(
    seen, monkeypatch
):
    def moved(bound, *_):
        bound.model.transform.set_widths({"rotation": 170.0})
        return Findings(widths_of(bound.model.transform, "undecided"), -999.0)

    monkeypatch.setattr("augury.methods.invariant_weights.intervals", moved)
    monkeypatch.setattr("augury.methods.invariant_weights.SHALLOW", seen)
    method = learner()
    one_epoch(method, 1)
    found = method.conclude(BATCHES, generator(1)).log_evidence
    assert found == -999.0 if seen == 24 else abs(found - method.bound.value(BATCHES(), generator(2))) < 3  # sampled


@pytest.mark.parametrize("side", ["input", "weight"])
def test_images_from_end_to_end_with_a_folder_and_back(side, tmp_path):
    data = images()
    given = {"generators": ("rotation", "scale"), "model": "rff_256", "side": side, **QUICK}
    result = learn(data, method="invariant-weights", run=tmp_path / "run", **given)
    assert isinstance(result.model, ShallowOrbit) and result.config.method == "invariant_weights"
    assert list(result.invariance.widths) == ["rotation", "scale_x", "scale_y"]
    assert result.invariance.widths["rotation"].planted == 180.0
    assert all(w.low is not None for w in result.invariance.widths.values())
    assert result.invariance.log_evidence == pytest.approx(result.metrics[-1]["log_evidence"], rel=0.5)
    loaded = load_model(tmp_path / "run")
    assert loaded.side == side and torch.equal(loaded(data.x_test), result.model(data.x_test))


@pytest.mark.parametrize(("kind", "posterior"), [(Rff, "natural"), (Relu, "natural"), (Relu, "adam"), (Rff, "point")])
def test_a_killed_run_goes_on_to_the_same_bits(kind, posterior, tmp_path):
    given = {"posterior": posterior, "checkpoint_seconds": 0.0, **QUICK, "epochs": 6, "evaluate_every": 0}
    whole = learn(DATA, net(kind), "invariant_weights", **given)
    with pytest.raises(Killed):
        learn(DATA, net(kind), "invariant_weights", run=tmp_path / "r", callbacks=KillAt(5), **given)
    resumed = learn(DATA, net(kind), "invariant_weights", run=tmp_path / "r", resume=True, **given)
    assert same_bits(whole.model.state_dict(), resumed.model.state_dict())
    assert without_time(whole.metrics) == without_time(resumed.metrics)
    assert whole.invariance.widths == resumed.invariance.widths
    assert whole.invariance.log_evidence == resumed.invariance.log_evidence


def test_regression_finds_the_noise():
    x = torch.randn(90, 2, generator=generator(0))
    y = x.square().sum(1, keepdim=True).sin() + 0.1 * torch.randn(90, 1, generator=generator(1))
    data = Dataset(x[:60], y[:60], x[60:], y[60:], kind="coordinates", task="regression")
    model = Rff((2,), 1, generator(0), units=60, sigma=1.0)
    result = learn(data, model, "invariant-weights", **{**QUICK, "epochs": 20, "samples": 8})
    assert result.invariance.test_error < 0.35
    assert result.invariance.widths["rotation"].value > 60.0


def test_rings_may_be_turned_and_a_chequerboard_may_not():
    found = {}
    for planted in (180.0, 0.0):
        data = toy(planted, n=150, n_test=200)
        model = Rff((2,), 2, generator(0), units=100, sigma=2.0)
        result = learn(data, model, "invariant-weights", batch=150, epochs=25, widths={"rotation": 20.0})
        found[planted] = result.invariance
    assert found[180.0].widths["rotation"].value > 150.0 and found[180.0].test_accuracy > 0.95
    assert found[0.0].widths["rotation"].value < 15.0
    assert found[180.0].widths["rotation"].verdict == "invariant"


def test_a_run_ends_when_its_widths_rest_and_more_epochs_change_nothing():
    data = toy(180.0, n=100, n_test=10)
    results = []
    for epochs in (40, 60):
        model = Rff((2,), 2, generator(0), units=50, sigma=2.0)
        results.append(learn(data, model, "invariant-weights", batch=100, epochs=epochs, samples=8))
    assert len(results[0].metrics) < 40
    assert same_bits(results[0].model.state_dict(), results[1].model.state_dict())


def bright(model, **given):
    return learn(images(), model, "invariant-weights", generators=("brightness",), **given, **QUICK)


REFUSED = {
    r"takes shallow networks.*rff.*got MLP.*'lila'": lambda: learn(DATA, "mlp", "invariant-weights", **QUICK),
    "Did you mean 'weight'": lambda: learn(DATA, net(), "invariant-weights", side="wieght"),
    "'point'": lambda: learn(DATA, net(), "invariant-weights", posterior="pont"),
    "only affine transformations can act on the weights": lambda: bright(
        net(outputs=3, shape=(1, 8, 8)), side="weight"
    ),
    "Did you mean 'invariant_weights'": lambda: learn(DATA, net(), "invariant-wieghts"),
}


@pytest.mark.parametrize("says", REFUSED)
def test_refused_before_training(says):
    refused(says, REFUSED[says])


def test_the_command_line_takes_hyphens_and_the_network_is_rff_unless_named(npz, augury):
    words = "--epochs 3 -S 2 --set samples_eval=2 --model rff_256 -g rotation --method invariant-weights --run a"
    result = json.loads(augury("learn", npz, *words.split(), "--json")[1])
    assert result["method"] == "invariant_weights" and "rotation" in result["widths"]
    assert result["baseline"]["method"] == "plain" and result["log_evidence"] < 0
    assert prepare(DATA, None, "invariant-weights", None, {}).config.model == "rff"
