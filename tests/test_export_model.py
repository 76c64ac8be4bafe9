"""The exported program says what the model says, in any PyTorch; the card says what it is."""

import pytest
import torch

import augury
from augury.core.errors import RunError
from augury.core.rng import generator
from augury.core.units import FACTOR, WidthSpec
from augury.data.dataset import Dataset
from augury.export.card import card, exportable
from augury.export.program import export_model, program_of, save_program
from augury.models.networks import build as build_net
from augury.models.orbit import OrbitAverage
from augury.transforms.base import Transform
from augury.transforms.compose import Correlated
from augury.transforms.vocabulary import build as build_transform
from refusal import refused

CASES = {
    "affine": ("image", (1, 12, 16), "cnn", ["affine"]),
    "finite": ("image", (3, 12, 12), "resnet_8_8", ["C4", "C3", "flip_y", "T3"]),
    "composed": ("image", (3, 12, 16), "mlp5", ["C2", "affine", "color"]),
    "signal": ("signal", (2, 16), "signal_cnn", ["signal"]),
    "amplitude": ("signal", (2, 16), "signal_cnn", ["amplitude"]),
    "outline": ("signal", (2, 16), "signal_cnn", ["outline"]),
    "points": ("points", (9, 3), "pointnet", ["rotation3d", "scale"]),
    "coordinates": ("coordinates", (2,), "toy_mlp", ["affine"]),
}


def orbit(kind, shape, model, words):
    net, transform = build_net(model, shape, 4, generator(0)), build_transform(words, kind, shape)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(torch.randn(p.shape, generator=generator(1)) * 0.1)
        for p in transform.parameters():
            p.uniform_(0.2, 0.5, generator=generator(2))
    return OrbitAverage(net, transform, 4, 5, seed=3).eval()


def load_program(path):
    return torch.export.load(path).module()


def through_a_file(model, shape, path):
    save_program(path, program_of(model, shape))
    return load_program(path)


@pytest.mark.parametrize("case", CASES)
def test_a_program_says_what_the_model_says_for_any_number_of_inputs(case, tmp_path):
    shape = CASES[case][1]
    model = orbit(*CASES[case])
    x = torch.rand(7, *shape, generator=generator(4))
    with torch.no_grad():
        expected, bare = model(x), model.net(x)
    program = through_a_file(model, shape, tmp_path / "model.pt2")
    for part in (x, x[:1], x[:3]):
        assert torch.allclose(program(part), expected[: len(part)], atol=1e-5)
    assert (expected - bare).abs().max() > 1e-3  # the views are in the program, not only the network
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt2"]


def test_correlated_widths_and_straight_through_groups(tmp_path):
    model = orbit(*CASES["affine"])
    model.transform = Correlated(model.transform)
    with torch.no_grad():
        model.transform.L.add_(torch.randn(6, 6, generator=generator(5)) * 0.1)
    x = torch.rand(3, 1, 12, 16, generator=generator(4))
    assert torch.allclose(through_a_file(model, (1, 12, 16), tmp_path / "a.pt2")(x), model(x), atol=1e-5)
    hard = OrbitAverage(model.net, augury.Flip("x", relaxation="straight_through"), 2, 6).eval()
    hard.transform.set_widths({"flip_x": 30.0})
    assert torch.allclose(through_a_file(hard, (1, 12, 16), tmp_path / "b.pt2")(x), hard(x), atol=1e-5)


class Gain(Transform):
    kind = "signal"

    def __init__(self):
        super().__init__([WidthSpec("gain", FACTOR)])

    def act(self, x, eps):
        return x[:, None] * (eps[..., 0] * self.eta[0]).exp()[..., None, None]


class Stubborn(Gain):
    def act(self, x, eps):
        return super().act(x, eps) if float(x.sum()) > 0 else x[:, None]


def test_a_transformation_of_ones_own_is_followed_where_torch_can(tmp_path):
    net = build_net("signal_cnn", (2, 16), 4, generator(0))
    model = OrbitAverage(net, Gain(), 2, 5).eval()
    model.transform.set_widths({"gain": 2.0})
    x = torch.rand(3, 2, 16, generator=generator(4))
    assert torch.allclose(through_a_file(model, (2, 16), tmp_path / "a.pt2")(x), model(x), atol=1e-5)
    with pytest.raises(RunError, match=r"torch\.export cannot follow"):
        program_of(OrbitAverage(net, Stubborn(), 2, 5), (2, 16))


@pytest.fixture(scope="module")
def run(tmp_path_factory, short_runs):
    x = torch.rand(40, 1, 12, 12, generator=generator(0))
    y = torch.arange(40) % 2
    data = Dataset(x[:24], y[:24], x[24:], y[24:], class_names=("cat", "dog"), source="photos")
    folder = tmp_path_factory.mktemp("runs") / "a"
    learned = augury.learn(data, model="mlp5", epochs=2, batch=8, samples=2, samples_eval=4, run=folder)
    return folder, learned, data


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    return export_model(run[0], tmp_path_factory.mktemp("exported"))


def test_a_run_becomes_a_program_weights_and_a_card_and_files_in_the_way_are_left_alone(run, exported, tmp_path):
    _, learned, data = run
    files = sorted(p.name for p in exported.card.parent.iterdir())
    assert files == ["MODEL_CARD.md", "model.pt2", "model.safetensors"]
    assert torch.allclose(load_program(exported.program)(data.x_test), learned.model(data.x_test), atol=1e-5)
    (tmp_path / "file").write_text("mine")
    refused("is a file", export_model, run[0], tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_an_audit_takes_the_exported_program(run, exported):
    _, learned, data = run
    asked = {"widths": {"rotation": 30.0}, "corruptions": False, "levels": 1, "images": 8}
    of_program = augury.audit(str(exported.program), data, "rotation", trust=True, **asked)
    of_module = augury.audit(learned.model, data, "rotation", **asked)
    assert of_program.LI.value == pytest.approx(of_module.LI.value, rel=1e-3)
    assert of_program.accuracy == of_module.accuracy


def test_the_card_says_what_on_what_how_well_and_where_it_ends(run):
    folder, learned, _ = run
    text = card(exportable(folder))
    i = learned.invariance
    assert "cat, dog" in text and "photos: 24 training and 16 test" in text and "[B, 1, 12, 12]" in text
    assert f"{100 * i.test_accuracy:.2f} % right" in text and f"{i.log_evidence:.1f}" in text
    assert f"| rotation | {i.widths['rotation'].value:.4g} deg |" in text
    for title in ("What was learned", "On what", "How well", "How to use it", "Limits", "How it was trained"):
        assert f"## {title}" in text
    assert "averages the network over 4 fixed views" in text


def test_the_cards_own_code_runs(run, exported):
    _, learned, data = run
    blocks = exported.card.read_text().split("```python\n")[1:]
    for block in blocks:
        code = block.partition("```")[0].replace('"model.', f'"{exported.card.parent}/model.')
        names = {"x": data.x_test}
        exec(code, names)
        assert torch.allclose(names["model"](data.x_test), learned.model(data.x_test), atol=1e-5)
    assert len(blocks) == 2


def test_a_plain_network_claims_nothing(tmp_path, run):
    augury.learn(run[2], model="mlp5", method="plain", epochs=1, run=tmp_path / "plain")
    written = export_model(tmp_path / "plain", tmp_path / "out")
    assert written.program is not None and "no invariance is claimed" in written.card.read_text()


def test_a_network_of_ones_own_must_be_given(tmp_path, run):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 2))
    learned = augury.learn(run[2], model=net, epochs=1, samples=2, samples_eval=2, run=tmp_path / "own")
    refused(r"export_model\(run, folder, net\)", export_model, tmp_path / "own", tmp_path / "out")
    like_it = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 2))
    program = load_program(export_model(tmp_path / "own", tmp_path / "out", like_it).program)
    assert torch.allclose(program(run[2].x_test), learned.model(run[2].x_test), atol=1e-5)
