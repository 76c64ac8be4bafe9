"""Evidence that does not beat a guess decides nothing."""

import math

import pytest
import torch

from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.methods.learn import learn
from augury.methods.widths import guess, sober
from augury.report.headline import asides
from augury.training.learner import Findings, widths_of
from augury.transforms.vocabulary import build


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
def test_below_it_no_width_is_decided_and_a_note_says_so(value, decided):
    transform, y = build("rotation", "image", (1, 8, 8)), torch.tensor([0, 1, 0, 1])
    found = Findings(widths_of(transform, "invariant"), value)
    after = sober(found, y)
    if decided:
        assert after is found
        return
    assert {w.verdict for w in after.widths.values()} == {"undecided"}
    (note,) = after.notes
    assert f"{value / 4:.2f} nats of evidence" in note and "-0.69" in note and "doctor" in note


def noise(N: int = 40) -> Dataset:
    rng = generator(0)
    x, y = torch.rand(2 * N, 1, 8, 8, generator=rng), torch.randint(4, (2 * N,), generator=rng)
    return Dataset(x[:N], y[:N], x[N:], y[N:], task="classification", source="noise")


@pytest.mark.parametrize(
    "method", [("lila", "mlp5"), ("invariant_weights", "rff_256")], ids=lambda method: method[0]
)
def test_noise_says_nothing_of_invariances(method):
    name, model = method
    settings = {"epochs": 3, "samples": 2, "samples_eval": 2, "batch": 20}
    found = learn(noise(), model, name, **settings).invariance
    assert found.log_evidence < guess(noise().y_train)
    assert {w.verdict for w in found.widths.values()} == {"undecided"}
    assert "No width is decided" in found.notes[0] and asides(found)[-1] == found.notes[0]
