"""Weight tying, data augmentation and invariance regularisation: their equations, nu, and a run through the loop."""

import io
import json
import math

import pytest
import torch
import torch.nn.functional as F
from rich.console import Console

from augury.cli.learn import summary
from augury.config.learn import LearnConfig
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.methods.fixed_transform import DataAugmented, TiedLearner, random_views
from augury.methods.learn import learn as learn_from
from augury.methods.regularised import FINEST, MARGIN, NU_START, REACH, Regularised
from augury.models.small import MLP
from augury.models.weight_tied import WeightTied
from augury.records.results import Invariance
from augury.training.batches import Batches
from augury.training.checkpoint import learned, restore_learned
from augury.training.loop import fit
from augury.transforms.affine2d import Affine2d
from augury.transforms.finite_groups import CyclicRotation
from refusal import refused

X = torch.rand(12, 1, 6, 6, generator=generator(1))
Y = torch.arange(12) % 3
BATCHES = Batches(X, Y, 5, torch.device("cpu"))


def network():
    return MLP([36, 16, 3], generator(0), "relu")


def config(**given):
    return LearnConfig(**{"method": "plain", "rate": 0.01, "weight_decay": 0.0, **given})


def quadrants(n=60):
    """Images with a lit corner; the class is how brightly, whatever the corner."""
    rng = generator(3)
    y = torch.arange(2 * n) % 2
    x = 0.05 * torch.rand(2 * n, 1, 8, 8, generator=rng)
    for i, k in enumerate(torch.randint(4, (2 * n,), generator=rng).tolist()):
        x[i, 0, :4, :4] += 0.3 + 0.6 * y[i]
        x[i] = torch.rot90(x[i], k, (-2, -1))
    return Dataset(x[:n], y[:n], x[n:], y[n:])


def test_random_views_are_elements_of_the_orbit_each_as_likely_or_of_the_distribution():
    group = CyclicRotation(4)
    x = X[:1].expand(4000, -1, -1, -1)
    orbit = group.orbit(X[:1])[0]
    for first in (0, 1):
        views = random_views(group, x, generator(0), identity=not first)
        shares = (views[:, None] == orbit).flatten(2).all(-1).double().mean(0)
        expected = torch.tensor([0.0] * first + [1 / (4 - first)] * (4 - first), dtype=torch.float64)
        torch.testing.assert_close(shares, expected, atol=0.04, rtol=0)
    rotation = Affine2d((6, 6), "rotation")
    rotation.set_widths({"rotation": 40})
    torch.testing.assert_close(random_views(rotation, X, generator(4)), rotation(X, 1, generator(4))[:, 0])


def test_data_augmentation_takes_a_step_on_transformed_copies():
    net, twin = network(), network()
    learner = DataAugmented(net, CyclicRotation(4), config(), "classification", 12)
    loss = learner.train_step(X, Y, generator(5))
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.01, fused=True)
    expected = F.cross_entropy(twin(random_views(CyclicRotation(4), X, generator(5))), Y)
    expected.backward()
    optimizer.step()
    assert loss == pytest.approx(expected.item())
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), twin.parameters(), strict=True))
    assert learner.model is net


@pytest.mark.parametrize("nu", [0.7, 3.0])
def test_regularisation_adds_nu_times_the_logit_error(nu):
    net, twin = network(), network()
    learner = Regularised(net, CyclicRotation(4), config(nu=nu), "classification", 12)
    loss = learner.train_step(X, Y, generator(5))
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.01)
    f, f_g = twin(X), twin(random_views(CyclicRotation(4), X, generator(5), identity=False))
    task = F.cross_entropy(f, Y)
    (task + nu * sum((f[b] - f_g[b]).square().sum() for b in range(12)) / 12).backward()
    optimizer.step()
    assert loss == pytest.approx(task.item())
    for ours, expected in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, expected)


def test_a_given_nu_stays_and_an_automatic_one_follows_SI(monkeypatch):
    given = Regularised(network(), CyclicRotation(4), config(nu=0.7), "classification", 12)
    assert given.end_epoch(BATCHES, 1, generator(0))["nu"] == 0.7 == given.nu.item()
    learner = Regularised(network(), CyclicRotation(4), config(), "classification", 12)
    trace = []
    for SI in (0.2, 0.97, 0.96, 1.0):
        monkeypatch.setattr(Regularised, "probe", lambda self, batches, rng, SI=SI: (0.1, SI))
        trace.append(learner.end_epoch(BATCHES, 1, generator(0))["nu"])
    gain = math.log(REACH) / config().epochs  # a hundredfold over the run
    gaps = [1.0, (0.95 + MARGIN - 0.97) / 0.02, (0.95 + MARGIN - 0.96) / 0.02, -0.5]
    steps = [gain * gaps[0], *(FINEST * gap for gap in gaps[1:])]  # halved at the crossing, down to the finest
    assert gain / 2 < FINEST < gain and gaps[1] < 0 < gaps[2]
    expected = [NU_START * math.exp(sum(steps[:k])) for k in range(5)]
    assert [*trace, learner.nu.item()] == pytest.approx(expected)


def test_nu_moves_by_a_tenth_in_long_runs_and_belongs_to_the_state():
    learner = Regularised(network(), CyclicRotation(4), config(epochs=300), "classification", 12)
    assert learner.gain.item() == pytest.approx(math.log(1.1))

    def automatic():
        return Regularised(network(), CyclicRotation(4), config(), "classification", 12)

    learner, other = automatic(), automatic()
    learner.end_epoch(BATCHES, 1, generator(0))
    assert learner.nu.item() != NU_START == other.nu.item()
    restore_learned(other, learned(learner))
    assert other.nu.item() == learner.nu.item()


def test_a_target_that_was_not_reached_is_said(monkeypatch):
    learner = Regularised(network(), CyclicRotation(4), config(), "classification", 12)
    monkeypatch.setattr(Regularised, "probe", lambda self, batches, rng: (0.1, 0.93))
    (note,) = learner.conclude(BATCHES, generator(0)).notes
    assert "SI is 0.930, below its target of 0.95" in note and "Train longer" in note
    monkeypatch.setattr(Regularised, "probe", lambda self, batches, rng: (0.1, 0.95))
    assert learner.conclude(BATCHES, generator(0)).notes == ()
    given = Regularised(network(), CyclicRotation(4), config(nu=0.7), "classification", 12)
    monkeypatch.setattr(Regularised, "probe", lambda self, batches, rng: (0.1, 0.1))
    assert given.conclude(BATCHES, generator(0)).notes == ()


def test_the_note_reaches_the_record_and_the_person():
    found = learn_from(
        quadrants(), MLP([64, 8, 2], generator(0)), "regularised", generators=("C4",), epochs=1
    ).invariance
    assert found.notes and "SI is" in found.notes[0]
    assert Invariance.from_json(json.loads(found.dumps())) == found
    console = Console(file=io.StringIO(), width=200)
    console.print(summary([found]))
    assert found.notes[0] in console.file.getvalue()


def test_the_probe_is_the_mean_over_one_view_of_each_input():
    net = network()
    learner = Regularised(net.train(), CyclicRotation(4), config(), "classification", 12)
    LI, SI = learner.probe(BATCHES, generator(2))
    rng, errors, cosines = generator(2), [], []
    for x in X.split(5):
        x = x.clone().requires_grad_()
        views = random_views(CyclicRotation(4), x, rng, identity=False)
        f, f_g = net(x), net(views)
        (m,) = torch.autograd.grad(f.max(1).values.sum(), x)
        (m_g,) = torch.autograd.grad(f_g.max(1).values.sum(), x)
        errors.append((f - f_g).square().sum(1).detach())
        cosines.append(F.cosine_similarity(m.flatten(1), m_g.flatten(1)))
    assert torch.cat(errors).mean().item() == pytest.approx(LI, rel=1e-5)
    assert torch.cat(cosines).mean().item() == pytest.approx(SI, rel=1e-5)
    assert net.training


def test_a_distribution_needs_a_width_and_a_tied_network_a_group():
    turn = Affine2d((6, 6), "rotation")
    for learner in (DataAugmented, Regularised):
        says = "width above zero among rotation, or a finite group such as C4"
        refused(says, learner, network(), turn, config(), "classification", 12)
    with pytest.raises(InputError, match="moves pixels exactly"):
        TiedLearner(network(), Affine2d((6, 6), "rotation"), config(), "classification", 12)
    with pytest.raises(InputError, match="si_target must be at least 0"):
        Regularised(network(), CyclicRotation(4), config(si_target=-1.0), "classification", 12)


def learner_of(name):
    net = MLP([64, 32, 32, 2], generator(0), "relu")
    given = (net, CyclicRotation(4), config(rate=0.003, nu=0.2), "classification", 60)
    makers = {"tied": TiedLearner, "augmented": DataAugmented, "regularised": Regularised}
    return makers[name](*given)


@pytest.mark.parametrize("name", ["tied", "augmented", "regularised"])
def test_each_learns_in_the_loop(name):
    learner = learner_of(name)
    result = fit(learner, quadrants(), config(rate=0.003, epochs=25, batch=20))
    assert result.scores["test_accuracy"] > 0.9
    assert result.findings.widths["C4"].verdict == "given"
    assert result.findings.widths["C4"].value == pytest.approx(75)
    assert isinstance(learner.model, WeightTied) == (name == "tied")
