"""Adaptation: the right descriptor by evidence, levels, plain models, scores, bounds, folders, errors."""

import json
import math
from dataclasses import replace

import pytest
import torch

import augury
from adapt_doubles import SHAPE, extractor, task
from augury.config.hyper import AdaptConfig
from augury.core.rng import generator
from augury.methods.hyper.adapt import adapt
from augury.methods.hyper.descriptor_search import Objective, Point, climb, starts, to_levels
from augury.methods.hyper.scores import bounded_loss, held_out, score
from augury.records.results import Adaptation, Bound, in_words
from augury.training.evaluate import outputs_of
from augury.training.run_folder import read_run
from augury.training.saved_model import describe_extractor, save_model
from refusal import refused


@pytest.fixture(scope="module")
def net():
    return extractor()


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("channel", [0, 1])
def test_the_evidence_finds_which_channel_does_not_matter(net, kind, channel):
    found = adapt(net, task(channel, kind=kind)).adaptation
    other = found.descriptor[("right", "left")[channel]]
    own = found.descriptor[("left", "right")[channel]]
    assert other > 0.75 and own < other - 0.25, found.descriptor
    assert found.score > 0.8 and found.scored_on == "test"
    assert found.score_name == ("accuracy" if kind == "classification" else "R^2")
    rounded = adapt(net, task(channel, kind=kind), levels=2).adaptation
    assert rounded.descriptor == ({"left": 0, "right": 1} if channel == 0 else {"left": 1, "right": 0})
    assert rounded.bound.descriptors == 4 and found.bound.descriptors == 1001**2
    assert f"invariant to {('right', 'left')[channel]}" in rounded.words


def test_the_chosen_descriptor_has_the_highest_evidence_that_was_met(net):
    data = task(0)
    found = adapt(net, data, folds=0).adaptation
    grid = [adapt(net, data, descriptor=[a, b], folds=0).adaptation for a in (0, 0.5, 1) for b in (0, 0.5, 1)]
    assert found.log_evidence >= max(g.log_evidence for g in grid) - 0.5
    assert all(g.criterion == "given" and g.trials == () and g.bound.descriptors == 1 for g in grid)
    assert max(t.value for t in found.trials) >= found.log_evidence - 0.5


@pytest.mark.parametrize("channel", [0, 1])
def test_a_few_scouts_find_what_all_examples_find(net, channel):
    data = task(channel)
    everyone = adapt(net, data, levels=2, folds=0).adaptation
    scouted = adapt(net, data, levels=2, folds=0, scouts=len(data.x_train) // 2).adaptation
    assert scouted.descriptor == everyone.descriptor
    assert scouted.log_evidence == pytest.approx(everyone.log_evidence, abs=0.1)
    assert {tuple(t.descriptor.values()) for t in scouted.trials} >= {(1, 1), (1, 0), (0, 1), (0, 0)}


def test_by_loss_the_middle_is_the_only_start_and_levels_are_rounded(net):
    found = adapt(net, task(0), criterion="loss", levels=3, folds=0).adaptation
    assert found.trials[0].descriptor == {"left": 0.5, "right": 0.5}
    assert set(found.descriptor.values()) <= {0, 0.5, 1}
    best = max(found.trials, key=lambda t: t.value).descriptor
    assert found.descriptor == {name: round(2 * value) / 2 for name, value in best.items()}
    assert max(t.value for t in found.trials) > found.trials[0].value


def test_the_adapted_model_is_plain_and_gives_what_the_extractor_gives(net):
    data = task(0)
    done = adapt(net, data)
    i = net.descriptor(done.adaptation.descriptor)
    net.calibrate(data.x_train)
    features = net(data.x_test, i)
    net.calibrate(None)
    assert not any("hyper" in type(m).__module__ for m in done.model.modules())
    assert torch.allclose(done.model(data.x_test), done.model[1](features), atol=1e-5)
    assert score(done.model(data.x_test), data.y_test) == done.adaptation.score
    assert net.reference is None


class Hill(Objective):
    """A parabola in place of an evidence."""

    def __init__(self, top):
        self.top, self.points, self.config = torch.tensor(top), [], AdaptConfig()

    def at(self, i):
        point = Point(i, -100 * float((i - self.top).square().sum()))
        self.points.append(point)
        return point

    def best(self, points):
        return max(points, key=lambda point: point.value)

    def slope(self, point):
        return -200 * (point.i - self.top)


def test_a_climb_reaches_the_top_or_the_wall_and_stops_at_once_in_a_corner():
    inside = climb(Hill([0.3, 0.8]), torch.tensor([1.0, 0.0]), AdaptConfig(steps=30))
    assert torch.allclose(inside.i, torch.tensor([0.3, 0.8]), atol=0.06)
    wall = climb(Hill([-1.0, 0.4]), torch.tensor([0.5, 0.5]), AdaptConfig(steps=30))
    assert wall.i[0] == 0 and abs(float(wall.i[1]) - 0.4) < 0.06
    corner = Hill([-1.0, 2.0])
    assert climb(corner, torch.tensor([0.0, 1.0]), AdaptConfig()).i.tolist() == [0, 1]
    assert len(corner.points) == 1


def test_levels_take_the_best_neighbour_by_evidence_and_the_design_of_starts():
    hill = Hill([0.2, 0.9])
    assert to_levels(hill, torch.tensor([0.45, 0.9]), 2).tolist() == [0, 1]
    assert torch.allclose(to_levels(hill, torch.tensor([0.21, 1.0]), 4), torch.tensor([1 / 3, 1.0]))
    steep = Hill([0.05, 0.9])
    assert to_levels(steep, torch.tensor([0.6, 0.9]), 2).tolist() == [0, 1]
    few, many = starts(2, torch.zeros(1)), starts(6, torch.zeros(1))
    assert len(few) == 5 and len(many) == 15
    assert {tuple(row) for row in few.tolist()} == {(0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0.5)}
    assert len({tuple(row) for row in many.tolist()}) == 15


def test_the_bound_equals_the_formula_term_by_term(net):
    data = task(0)
    done = adapt(net, data, levels=3, failure=0.1)
    b = done.adaptation.bound
    n = len(data.x_train)
    assert (b.n, b.descriptors, b.failure) == (n, 9, 0.1)
    z = outputs_of(done.model[0], data.x_train).double()
    centred = z - z.mean(0)
    scale = centred.square().sum(1).mean().sqrt()
    Z = centred / scale
    layer = done.model[1]
    weight, bias = layer.weight.double() * scale, layer.bias + layer.weight @ z.mean(0).float()
    X, B = (Z.square().sum(1) + 1).sqrt().max(), (weight.square().sum() + bias.square().sum()).sqrt()
    f = done.model(data.x_train)
    margins = [
        float(row[y] - max(v for c, v in enumerate(row) if c != y)) for row, y in zip(f, data.y_train, strict=True)
    ]
    risk = sum(min(1, max(0, 1 - m / math.sqrt(2))) for m in margins) / n
    assert abs(b.X - X) < 1e-4 and abs(b.B - B) < 1e-3 and abs(b.risk - risk) < 1e-5
    assert abs(b.complexity - 2 * b.X * b.B / math.sqrt(n)) < 1e-12
    assert abs(b.choice - 3 * math.sqrt(math.log(9 / 0.1) / (2 * n))) < 1e-12
    assert b.total == b.risk + b.complexity + b.choice
    assert b.risk >= sum(m <= 0 for m in margins) / n
    given = adapt(net, data, descriptor=done.adaptation.descriptor, failure=0.1).adaptation.bound
    assert given.descriptors == 1 and given.choice < b.choice and abs(given.complexity - b.complexity) < 0.1


def test_the_bounded_loss_is_one_lipschitz():
    rng = generator(0)
    f, g = torch.randn(200, 5, generator=rng), torch.randn(200, 5, generator=rng) / 3
    y = torch.randint(5, (200,), generator=rng)
    for target in (y, torch.randn(200, 5, generator=rng)):
        change = (bounded_loss(f, target) - bounded_loss(f + g, target)).abs()
        assert (change <= g.norm(dim=1) + 1e-6).all() and change.max() > 0.2


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_the_held_out_estimate_equals_heads_that_are_fitted_anew(net, kind):
    data = task(0, N=40, kind=kind)
    features = outputs_of(extractor().materialise(torch.tensor([0.5, 0.5])), data.x_train)
    from augury.evidence.head import fit_head

    head = fit_head(features, data.y_train, 2, tolerance=1e-8)
    found = held_out(features, data.y_train, head, 40, generator(0))
    Z = features.double() - features.double().mean(0)
    Z = Z / Z.square().sum(1).mean().sqrt()
    predictions = torch.stack([_without(Z, data.y_train, k, head) for k in range(40)])
    y = data.y_train
    assert abs(found - score(predictions, y)) < (1e-6 if kind == "regression" else 1e-9)


def _without(Z, y, k, head):
    keep = torch.arange(len(Z)) != k
    if y.is_floating_point():
        Zp = torch.cat([Z, torch.ones(len(Z), 1)], 1).double()
        ridge = head.delta * head.sigma2 * torch.eye(Zp.shape[1]).double()
        ridge[-1, -1] = 0
        W = torch.linalg.solve(Zp[keep].T @ Zp[keep] + ridge, Zp[keep].T @ y[keep].double())
        return Zp[k] @ W
    from augury.evidence.head_softmax import basis, problem

    rotated = basis(Z)
    whole = problem(rotated, y, 2, head.delta)
    part = replace(whole, Z=whole.Z[keep], Y=whole.Y[keep])
    return part.solve(torch.zeros(2, whole.Z.shape[1]).double(), 1e-8) @ whole.Z[k]


def test_r2_is_averaged_over_the_targets_that_change_and_descriptors_are_put_in_words():
    y = torch.tensor([[0.0, 1.0, 5.0], [2.0, 3.0, 5.0], [4.0, 2.0, 5.0]])
    f = y + torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 9.0]])
    assert abs(score(f, y) - (1 - (1 / 8 + 1 / 2) / 2)) < 1e-9
    assert in_words({"rotation": 0.93, "color": 0.1, "scale": 0.5}) == (
        "invariant to rotation; partly invariant to scale; sensitive to color"
    )
    assert in_words({"a": 0.75, "b": 0.25}) == "invariant to a; sensitive to b"
    assert in_words({"a": 1.0, "b": 0.0}, {"a": 8.0, "b": 3.0}) == "invariant to a; undecided about b"


def test_a_run_folder_gives_record_and_model_back(net, tmp_path):
    data = task(0)
    done = adapt(net, data, run=tmp_path / "a")
    assert read_run(tmp_path / "a").adaptation == done.adaptation
    assert Adaptation.from_json(json.loads(done.adaptation.dumps())) == done.adaptation
    again = augury.load_model(tmp_path / "a")
    assert torch.equal(again(data.x_test), done.model(data.x_test))
    refused("--overwrite", adapt, net, data, run=tmp_path / "a")
    adapt(net, data, run=tmp_path / "a", overwrite=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine.txt").write_text("keep")
    refused("not overwritten", adapt, net, data, run=tmp_path / "b", overwrite=True)


def test_an_extractor_comes_from_its_file_and_only_a_sample_chooses(net, tmp_path):
    save_model(tmp_path / "e.safetensors", net, describe_extractor(net))
    told = []
    done = augury.adapt(tmp_path / "e.safetensors", task(0), images=60, tell=lambda i, v: told.append((i, v)), folds=0)
    assert done.adaptation.N == 160 and done.adaptation.extractor.endswith("e.safetensors")
    assert [(t.descriptor, t.value) for t in done.adaptation.trials] == told
    assert done.adaptation.held_out is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"descriptor": [0.5, 1.2]}, r"lie in \[0, 1\]"),
        ({"descriptor": [0.5]}, "2 entries"),
        ({"descriptor": {"left": 1, "rihgt": 0}}, "Did you mean 'right'"),
        ({"criterion": "evidense"}, "Did you mean 'evidence'"),
        ({"levels": 1}, "at least 2"),
        ({"folds": 1}, "folds"),
        ({"failure": 2.0}, "failure"),
        ({"imagse": 3}, "Did you mean 'images'"),
        ({"rate": 0.0}, "rate must be positive"),
    ],
)
def test_bad_arguments(net, arguments, says):
    refused(says, adapt, net, task(0), **arguments)


def test_bad_tasks(net):
    data, flat = task(0), task(0, kind="regression")
    one_class = replace(data, y_train=torch.zeros_like(data.y_train))
    refused("at least two classes; all 160 are of class '0'", adapt, net, one_class)
    wrong = replace(data, x_train=torch.rand(160, 2, 9, 9), x_test=torch.rand(160, 2, 9, 9))
    refused(r"takes inputs of shape \[2, 8, 8\]; this task's are \[2, 9, 9\].*--size 8", adapt, net, wrong)
    refused("channels", adapt, net, replace(data, x_train=data.x_train[:, :1], x_test=data.x_test[:, :1]))
    refused("targets that differ", adapt, net, replace(flat, y_train=torch.ones_like(flat.y_train)))
    refused("failure", Bound.of, 0.1, 1.0, 1.0, 10, 4, 1.5)
    assert net.input_shape == SHAPE
