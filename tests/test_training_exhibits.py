"""What a run leaves to be looked at, against a model asked one input at a time."""

import json

import pytest
import torch
from torch import nn

import augury
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.models.orbit import OrbitAverage
from augury.records.exhibits import Answers, Exhibits
from augury.training.exhibit import leave_beside, leave_exhibits, walks
from augury.training.loop import fit
from augury.transforms.affine2d import Affine2d
from training_doubles import ToyLearner, coordinates, settings

NAMES = ("cat", "dog", "<b>")


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
    leave_exhibits(folder, model, model.transform, data, outputs)
    return Exhibits.from_json(json.loads((folder / "views" / "exhibits.json").read_text()))


def test_the_answers_are_the_models_at_every_step(tmp_path):
    data, model = digits(), model_of()
    left = left_by(tmp_path, model, data)
    assert left.part == "test" and len({example.label for example in left.examples}) == 3
    for k, route in enumerate(left.routes):
        x = data.x_test[[example.index for example in left.examples]]
        (walk,) = (w for w in walks(model.transform, x) if w.name == route.name)
        for b, example in enumerate(left.examples):
            for s in (0, 7, len(route.at) - 1):
                p = model(walk.views[b, s : s + 1]).softmax(1)[0]
                assert left.answers.classes[k][b][s] == p.argsort(descending=True).tolist()
                own = p[NAMES.index(example.label)].item()
                assert left.answers.truth[k][b][s] == pytest.approx(own, abs=1e-4)
                assert left.answers.chances[k][b][s][0] == pytest.approx(p.max().item(), abs=1e-4)


def test_pictures_stand_where_the_record_says(tmp_path):
    left = left_by(tmp_path, model_of(), digits())
    assert [route.name for route in left.routes] == ["rotation", "scale_x", "all widths together"]
    for gallery in (left.draws, *(route.frames for route in left.routes)):
        assert gallery.rows == 5 and (tmp_path / "views" / gallery.file).is_file()
    assert left.draws.columns == 10 and left.routes[0].learned == pytest.approx(60)


def test_confusion_counts_every_test_input(tmp_path):
    data, model = digits(), model_of()
    with torch.no_grad():
        outputs = model(data.x_test)
    left = left_by(tmp_path, model, data, outputs)
    for t in range(3):
        for a in range(3):
            right = sum(
                int(y) == t and int(f.argmax()) == a for y, f in zip(data.y_test, outputs, strict=True)
            )
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
    torch.testing.assert_close(
        torch.tensor(left.answers.values[0][0][12]),
        model(data.x_test[[first.index]])[0].detach(),
        atol=1e-4,
        rtol=0,
    )


def test_another_model_answers_on_the_same_orbits(tmp_path):
    data, model = digits(), model_of()
    left = left_by(tmp_path, model, data)
    leave_beside(tmp_path, "plain", model.net, model.transform, data)
    beside = Answers.from_json(json.loads((tmp_path / "views" / "beside.json").read_text()))
    x = data.x_test[[left.examples[0].index]]
    p = model.net(x).softmax(1)[0]
    assert beside.model == "plain" and beside.classes[0][0][12] == p.argsort(descending=True).tolist()
    leave_beside(tmp_path, "itself", model, model.transform, data)
    again = Answers.from_json(json.loads((tmp_path / "views" / "beside.json").read_text()))
    assert again.truth == left.answers.truth


def test_records_come_back_from_json_as_they_were(tmp_path):
    left = left_by(tmp_path, model_of(), digits())
    assert json.dumps(Exhibits.from_json(left.to_json()).to_json()) == json.dumps(left.to_json())


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
