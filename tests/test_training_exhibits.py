"""The exhibits of a run, against predictions for one input at a time, and the routes through orbits."""

import json
import math

import pytest
import torch
from torch import nn

import augury
from augury.core.rng import generator
from augury.core.units import DEGREES, FACTOR, PLAIN
from augury.data.dataset import Dataset
from augury.models.orbit import OrbitAverage
from augury.records.exhibits import Answers, Exhibits
from augury.training.exhibit import STEPS, TOGETHER, orbit_walks, signed, write_beside, write_exhibits
from augury.training.loop import fit
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from augury.transforms.compose import Correlated
from augury.transforms.finite_groups import CyclicRotation
from augury.transforms.vocabulary import build
from training_doubles import ToyLearner, coordinates, settings

NAMES = ("cat", "dog", "<b>")
MIDDLE = STEPS // 2


def digits(n: int = 12, n_test: int = 30) -> Dataset:
    x = torch.rand(n + n_test, 1, 8, 8, generator=generator(0))
    y = torch.arange(n + n_test) % 3
    return Dataset(x[:n], y[:n], x[n:], y[n:], class_names=NAMES)


def model_of(outputs: int = 3) -> OrbitAverage:
    torch.manual_seed(0)
    transform = Affine2d((8, 8), ("rotation", "scale_x"))
    transform.set_widths({"rotation": 60, "scale_x": 1.2})
    return OrbitAverage(nn.Sequential(nn.Flatten(), nn.Linear(64, outputs)), transform, 2, 3).eval()


def left_by(folder, model, data, outputs=None) -> Exhibits:
    write_exhibits(folder, model, model.transform, data, outputs)
    return Exhibits.from_json(json.loads((folder / "views" / "exhibits.json").read_text()))


def test_the_answers_are_the_models_at_every_step(tmp_path):
    data, model = digits(), model_of()
    left = left_by(tmp_path, model, data)
    assert left.part == "test" and len({example.label for example in left.examples}) == 3
    for k, route in enumerate(left.routes):
        x = data.x_test[[example.index for example in left.examples]]
        (walk,) = (w for w in orbit_walks(model.transform, x) if w.name == route.name)
        for b, example in enumerate(left.examples):
            for s in (0, 7, len(route.at) - 1):
                p = model(walk.views[b, s : s + 1]).softmax(1)[0]
                assert left.answers.classes[k][b][s] == p.argsort(descending=True).tolist()
                own = p[NAMES.index(example.label)].item()
                assert left.answers.truth[k][b][s] == pytest.approx(own, abs=1e-4)
                assert left.answers.chances[k][b][s][0] == pytest.approx(p.max().item(), abs=1e-4)


def test_pictures_are_where_the_record_says_and_it_comes_back_from_json(tmp_path):
    left = left_by(tmp_path, model_of(), digits())
    assert [route.name for route in left.routes] == ["rotation", "scale_x", "all widths together"]
    for gallery in (left.draws, *(route.frames for route in left.routes)):
        assert gallery.rows == 5 and (tmp_path / "views" / gallery.file).is_file()
    assert left.draws.columns == 10 and left.routes[0].learned == pytest.approx(60)
    left = left_by(tmp_path, model_of(), digits())
    assert json.dumps(Exhibits.from_json(left.to_json()).to_json()) == json.dumps(left.to_json())


def test_confusion_counts_every_test_input(tmp_path):
    data, model = digits(), model_of()
    with torch.no_grad():
        outputs = model(data.x_test)
    left = left_by(tmp_path, model, data, outputs)
    for t in range(3):
        for a in range(3):
            right = sum(int(y) == t and int(f.argmax()) == a for y, f in zip(data.y_test, outputs, strict=True))
            assert left.confusion[t][a] == right
    counts = [n for _, _, n in left.confused]
    assert left.tested == 30 == sum(map(sum, left.confusion)) and counts == sorted(counts, reverse=True)
    assert all(t != a and left.confusion[t][a] == n for t, a, n in left.confused)


def test_many_classes_keep_only_the_most_frequent_mistakes(tmp_path):
    x, y = torch.rand(80, 1, 8, 8, generator=generator(0)), torch.arange(80) % 40
    data = Dataset(x[:40], y[:40], x[40:], y[40:])
    outputs = torch.zeros(40, 40)
    outputs[:, 7] = 1
    left = left_by(tmp_path, model_of(40), data, outputs)
    assert left.confusion == [] and len(left.confused) == 12 and all(a == 7 != t for t, a, _ in left.confused)


def test_without_a_test_set_training_inputs_are_shown_and_no_errors(tmp_path):
    left = left_by(tmp_path, model_of(), digits(n=12, n_test=0))
    assert left.part == "train" and left.tested == 0 and left.confusion == [] and len(left.examples) == 5


def test_regression_shows_values_and_pairs(tmp_path):
    x = torch.rand(20, 1, 8, 8, generator=generator(0))
    y = x.flatten(1).mean(1, keepdim=True).expand(-1, 2).contiguous()
    data, model = Dataset(x[:10], y[:10], x[10:], y[10:], task="regression"), model_of(2)
    with torch.no_grad():
        outputs = model(data.x_test)
    left = left_by(tmp_path, model, data, outputs)
    assert left.answers.classes == [] and left.confusion == []
    assert left.pairs[3] == pytest.approx([y[13, 0].item(), outputs[3, 0].item()], abs=1e-4)
    first = left.examples[0]
    assert first.label is None and first.target == pytest.approx(data.y_test[first.index].tolist())
    own = model(data.x_test[[first.index]])[0].tolist()
    assert left.answers.values[0][0][12] == pytest.approx(own, abs=1e-4, rel=0)


def test_another_model_answers_on_the_same_orbits(tmp_path):
    data, model = digits(), model_of()
    left = left_by(tmp_path, model, data)
    write_beside(tmp_path, "plain", model.net, model.transform, data)
    beside = Answers.from_json(json.loads((tmp_path / "views" / "beside.json").read_text()))
    x = data.x_test[[left.examples[0].index]]
    p = model.net(x).softmax(1)[0]
    assert beside.model == "plain" and beside.classes[0][0][12] == p.argsort(descending=True).tolist()
    write_beside(tmp_path, "itself", model, model.transform, data)
    again = Answers.from_json(json.loads((tmp_path / "views" / "beside.json").read_text()))
    assert again.truth == left.answers.truth


def test_learn_leaves_exhibits_in_its_folder_and_overwriting_removes_them(tmp_path):
    quick = {"model": "mlp5", "epochs": 1, "samples": 2, "samples_eval": 2, "run": tmp_path / "a"}
    augury.learn(digits(), method="augmented", widths={"rotation": 30.0}, **quick)
    left = Exhibits.from_json(json.loads((tmp_path / "a" / "views" / "exhibits.json").read_text()))
    assert left.routes[0].learned == pytest.approx(30, abs=1e-3) and left.tested == 30
    augury.learn(digits(), method="plain", overwrite=True, **quick)
    left = Exhibits.from_json(json.loads((tmp_path / "a" / "views" / "exhibits.json").read_text()))
    assert left.routes == () and left.draws is None and left.tested == 30
    assert [path.name for path in (tmp_path / "a" / "views").iterdir()] == ["exhibits.json"]


def test_scores_on_the_way_may_take_a_part_of_the_test_set_from_all_over_it():
    data = coordinates(24)
    learner = ToyLearner()
    seen = []
    forward = learner.model.forward
    learner.model.forward = lambda x: seen.append(len(x)) or forward(x)
    result = fit(learner, data, settings(epochs=3, evaluate_every=1, evaluate_images=10))
    assert seen == [8, 8, 24, 24]  # every third of 24, then all at the end, then all in the chosen state
    right = (result.outputs.argmax(1) == data.y_test).double().mean().item()
    assert result.scores == {"test_accuracy": right}


def images(n: int = 2, side: int = 9) -> torch.Tensor:
    return torch.rand(n, 1, side, side, generator=generator(0), dtype=torch.float64)


def affine(words="affine", **widths):
    transform = Affine2d((9, 9), words).double()
    transform.set_widths(widths)
    return transform


def test_an_angle_makes_the_full_turn_in_steps_of_the_transformation_itself():
    x = images()
    (walk,) = orbit_walks(affine("rotation", rotation=40), x)
    assert walk.name == "rotation" and walk.unit == "deg" and walk.learned == pytest.approx(40)
    assert walk.at[0] == -180 and walk.at[MIDDLE] == 0 and walk.at[-1] == 180
    torch.testing.assert_close(walk.views[:, MIDDLE], x)
    torch.testing.assert_close(walk.views[:, 0], walk.views[:, -1])
    x = images()
    (walk,) = orbit_walks(affine("rotation", rotation=40), x)
    step = walk.at.index(60)
    expected = affine("rotation", rotation=60).act(x, torch.ones(2, 1, 1, dtype=torch.float64))[:, 0]
    torch.testing.assert_close(walk.views[:, step], expected)
    assert not torch.allclose(walk.views[:, step], walk.views[:, step + 1])


def test_other_widths_go_to_twice_what_was_learned_and_a_little_way_where_nothing_was():
    x = images()
    walk = orbit_walks(affine(["scale_x", "translate_x"], scale_x=1.5), x)[0]
    assert walk.name == "scale_x" and walk.at[-1] == pytest.approx(1.5**2, abs=1e-4)
    assert walk.at[0] == pytest.approx(1.5**-2, abs=1e-4) and walk.at[MIDDLE] == 1
    (none,) = orbit_walks(affine("translate_x"), x)
    assert none.learned == 0 and none.at[-1] == pytest.approx(0.25 * 9 / 2, abs=1e-4)


def test_the_largest_widths_come_first_and_then_all_together():
    found = orbit_walks(affine(rotation=90, scale_x=1.1, shear=0.01), images())
    assert [walk.name for walk in found] == ["rotation", "scale_x", TOGETHER]
    assert [walk.name for walk in orbit_walks(affine(rotation=90), images())] == ["rotation", "translate_x"]


def test_together_stays_inside_the_distribution_and_moves_every_width():
    transform = AffineCoordinates(("translate_x", "translate_y")).double()
    transform.set_widths({"translate_x": 0.5, "translate_y": 0.25})
    x = torch.zeros(1, 2, dtype=torch.float64)
    moved = orbit_walks(transform, x)[-1].views[0]
    size = moved.abs().amax(0).tolist()
    assert size[0] <= 0.5 + 1e-9 and size[1] <= 0.25 + 1e-9
    assert size[0] > 0.45 and size[1] > 0.2


def test_what_has_one_direction_starts_at_the_input_and_groups_show_elements():
    x = images()
    (walk,) = orbit_walks(build("blur", "image", (1, 9, 9)).double(), x)
    assert walk.at[0] == 0 and walk.at[1] > 0
    torch.testing.assert_close(walk.views[:, 0], x)
    x = images()
    group = CyclicRotation(4)
    group.set_widths({"C4": 30})
    (walk,) = orbit_walks(group, x)
    assert walk.unit == "element" and walk.at == (0, 1, 2, 3) and walk.learned == pytest.approx(30)
    assert torch.equal(walk.views[:, 1], torch.rot90(x, 1, (-2, -1)))


def test_compositions_and_correlated_widths_are_walked_one_width_at_a_time():
    x = images()
    both = build("flip_x,rotation", "image", (1, 9, 9)).double()
    both.set_widths({"rotation": 90, "flip_x": 50})
    found = {walk.name: walk for walk in orbit_walks(both, x)}
    assert set(found) == {"rotation", "flip_x", TOGETHER}
    assert torch.equal(found["flip_x"].views[:, 1], x.flip(-1))
    plain = {walk.name: walk for walk in orbit_walks(affine("rotation", rotation=90), x)}
    torch.testing.assert_close(found["rotation"].views, plain["rotation"].views)
    mixed = Correlated(affine(["rotation", "scale_x"], rotation=90, scale_x=1.2))
    turned = {walk.name: walk for walk in orbit_walks(mixed, x)}["rotation"]
    torch.testing.assert_close(turned.views, plain["rotation"].views)


def test_walking_changes_nothing_and_the_opposite_of_a_factor_is_its_inverse():
    transform = affine(rotation=90, scale_x=1.1)
    before = transform.eta.clone()
    orbit_walks(transform, images())
    assert torch.equal(transform.eta, before)
    assert signed(FACTOR, math.log(2)) == 2 and signed(FACTOR, -math.log(2)) == 0.5
    assert signed(DEGREES, -math.pi) == -180 and str(signed(PLAIN, -0.0)) == "0.0"
