"""A policy leaves a run, goes through JSON, and is the same distribution again."""

import json

import pytest
import torch

import augury
from augury.core.errors import RunError
from augury.core.rng import generator
from augury.export.policy import Policy
from augury.records.results import Width
from augury.training.saved_model import load_model
from augury.transforms.vocabulary import build
from export_doubles import COLORS, FINITE, GEOMETRY, policy
from refusal import refused
from training_doubles import coordinates

KINDS = {
    "image": ((3, 24, 24), ["affine", "color", "flip_x", "C4", "T3"]),
    "signal": ((2, 32), ["signal"]),
    "points": ((20, 3), ["rotation3d", "scale"]),
    "coordinates": ((2,), ["affine"]),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory, short_runs):
    folder = tmp_path_factory.mktemp("runs") / "a"
    quick = {"epochs": 2, "batch": 12, "samples": 2, "samples_eval": 3, "evidence_below": 9.0}
    start = {"rotation": 30.0, "scale_x": 1.5, "scale_y": 1.5}
    learned = augury.learn(coordinates(24), generators=("rotation", "scale"), widths=start, run=folder, **quick)
    return folder, learned


def test_a_run_gives_its_widths_and_they_come_back_from_a_file(run, tmp_path):
    folder, learned = run
    found = Policy.read(folder)
    assert {n: w.value for n, w in found.widths.items()} == {n: w.value for n, w in learned.invariance.widths.items()}
    assert found.kind == "coordinates" and found.input_shape == [2] and found.learned["method"] == "lila"
    found = Policy.read(run[0])
    found.write(tmp_path / "p.json")
    assert Policy.read(tmp_path / "p.json") == found
    values = json.loads((tmp_path / "p.json").read_text())
    assert values["format"] == 1 and values["widths"]["rotation"]["unit"] == "deg"


def test_the_transformation_of_a_policy_is_the_one_that_the_model_has(run):
    theirs = load_model(run[0]).transform
    ours = Policy.read(run[0]).transform()
    assert ours.names == theirs.names and theirs.eta.abs().min() > 1e-3
    assert torch.allclose(ours.eta, theirs.eta.abs(), rtol=1e-5)  # a width has no sign


@pytest.mark.parametrize("kind", KINDS)
def test_every_transformation_can_be_named_by_its_widths(kind):
    shape, words = KINDS[kind]
    transform = build(words, kind, shape)
    with torch.no_grad():
        for p in transform.parameters():
            p.uniform_(0.1, 0.4, generator=generator(0))
    units = {spec.name: spec.unit.symbol for spec in transform.specs}
    widths = {name: Width(value, units[name]) for name, value in transform.describe().items()}
    again = Policy.from_json(json.loads(Policy(widths, kind, list(shape)).dumps())).transform()
    assert again.names == transform.names
    assert torch.allclose(again.eta, transform.eta, atol=1e-6)
    x = torch.rand(2, *shape, generator=generator(1))
    assert torch.allclose(again(x, 3, generator(2)), transform(x, 3, generator(2)), atol=1e-4)


def test_pixels_grow_with_the_image_and_degrees_do_not():
    widths = policy(GEOMETRY, COLORS).widths_for((3, 48, 60))
    assert widths["translate_x"] == pytest.approx(4.0) and widths["blur"] == pytest.approx(3.0)
    assert widths["rotation"] == 100.0 and widths["scale_x"] == 1.3
    small, large = policy(GEOMETRY).transform(), policy(GEOMETRY).transform((3, 48, 48))
    assert torch.allclose(small.eta, large.eta)


def test_only_widths_that_someone_stands_by_and_none_does_nothing():
    assert list(policy(GEOMETRY, FINITE).sure().widths) == ["translate_x", "rotation", "scale_x", "shear"]
    x = torch.rand(2, 3, 8, 8, generator=generator(0))
    assert torch.equal(policy().transform()(x, 3, generator(1)), x[:, None].expand(-1, 3, -1, -1, -1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"format": 1, "widht": 3}', "has no field 'widht'"),
        ('{"format": 2}', "format 1 can be read; got format 2"),
        ('{"format": 1, "kind": "image"}', "cannot be read"),
        ('{"format": 1, "kind": "image", "input_shape": [1], "widths": {"rotation": 3}}', "cannot be read"),
    ],
)
def test_a_file_that_is_no_policy_is_refused(tmp_path, text, says):
    (tmp_path / "p.json").write_text(text)
    refused(says, Policy.read, tmp_path / "p.json")


def test_places_without_a_policy_are_refused(tmp_path, run):
    refused("cannot be read", Policy.read, tmp_path / "none.json")
    refused(r"config\.json", Policy.read, tmp_path)
    (tmp_path / "config.json").write_text("{}")
    refused("has not ended", Policy.read, tmp_path)
    (tmp_path / "invariance.json").write_text((run[0] / "invariance.json").read_text())
    (tmp_path / "model.safetensors").write_text("nothing")
    refused("damaged", Policy.read, tmp_path, error=RunError)


def test_a_transformation_of_ones_own_has_no_words(tmp_path):
    own = augury.AffineCoordinates("rotation")
    learned = augury.learn(coordinates(24), transform=own, epochs=1, samples=2, run=tmp_path / "own")
    assert learned.invariance.widths
    refused("--to torch", Policy.read, tmp_path / "own")
