"""`augury.learn` from end to end on small problems, and what it refuses before training."""

import json

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from augury.core.errors import AuguryError, InputError, RunError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.methods.learn import learn
from augury.methods.prepare import prepare
from augury.models.orbit import OrbitAverage
from augury.records.results import Invariance
from augury.training.progress import Progress
from augury.training.saved_model import load_model
from augury.transforms.affine2d import AffineCoordinates
from refusal import refused
from training_doubles import coordinates, same_bits, small_net

QUICK = {"epochs": 2, "batch": 12, "samples": 2, "samples_eval": 2}


def images(n: int = 12, size: int = 12) -> Dataset:
    x = torch.rand(2 * n, 1, size, size, generator=generator(0))
    y = torch.arange(2 * n) % 3
    names = ("a", "b", "c")
    return Dataset(x[:n], y[:n], x[n:], y[n:], class_names=names, planted={"rotation": 180.0}, source="noise")


def test_the_result_has_widths_with_the_planted_truth_the_model_and_the_metrics():
    result = learn(images(), method="augerino", epochs=1, samples=2, samples_eval=2)
    widths = result.invariance.widths
    assert list(widths) == ["translate_x", "translate_y", "rotation", "scale_x", "scale_y", "shear"]
    assert widths["rotation"].planted == 180.0 and widths["rotation"].unit == "deg"
    assert widths["shear"].planted is None
    assert isinstance(result.model, OrbitAverage) and not result.model.training
    assert result.invariance.model == "cnn" and result.invariance.data == "noise"
    assert len(result.metrics) == 1 and result.invariance.run is None


def test_a_transformation_or_module_of_ones_own_is_trained_in_place():
    net = small_net()
    before = net[0].weight.clone()
    result = learn(coordinates(), net, "plain", **QUICK)
    assert result.model is net and not torch.equal(net[0].weight, before)
    assert result.invariance.model == "custom"
    transform = AffineCoordinates("rotation")
    result = learn(coordinates(), transform=transform, **QUICK)
    assert result.model.transform is transform
    refused("not both", learn, coordinates(), transform=transform, generators=("rotation",), **QUICK)


def test_the_network_suits_the_data_unless_named():
    assert learn(coordinates(), method="plain", **QUICK).config.model == "toy_mlp"
    assert learn(images(size=6), method="plain", **QUICK).config.model == "mlp"
    assert learn(images(), method="plain", **QUICK).config.model == "cnn"
    assert learn(images(), model="mlp", method="plain", **QUICK).config.model == "mlp"


def test_without_a_test_set_no_score_and_regression_has_an_error():
    x = torch.randn(20, 2, generator=generator(0))
    y = x @ torch.tensor([[1.0], [2.0]])
    data = Dataset(x[:12], y[:12], x[12:], y[12:], kind="coordinates", task="regression")
    result = learn(data, nn.Linear(2, 1), "plain", epochs=150, rate=0.1)
    assert result.invariance.test_accuracy is None
    assert result.invariance.test_error == pytest.approx(0.0, abs=0.05)
    data = coordinates()
    bare = Dataset(data.x_train, data.y_train, data.x_test[:0], data.y_test[:0], "coordinates")
    assert learn(bare, **QUICK).invariance.test_accuracy is None


def test_augerino_finds_that_rings_may_be_turned():
    rng = generator(0)
    radius = torch.rand(300, generator=rng).mul(0.4) + torch.arange(300).remainder(2)
    angle = torch.rand(300, generator=rng) * 2 * torch.pi
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    y = torch.arange(300) % 2
    rings = Dataset(x[:200], y[:200], x[200:], y[200:], "coordinates", planted={"rotation": 180.0})
    result = learn(rings, method="augerino", epochs=60, batch=50, eta_rate=0.02, eta_rate_end=0.02, samples=4)
    assert result.invariance.widths["rotation"].value > 120.0
    assert result.invariance.test_accuracy > 0.97


def test_a_run_folder_holds_everything_and_the_model_comes_back(tmp_path):
    data, run = images(), tmp_path / "run"
    result = learn(data, run=run, **QUICK)
    files = "checkpoint config.json invariance.json metrics.jsonl model.safetensors report.html views"
    assert sorted(path.name for path in run.iterdir()) == files.split()
    again = Invariance.from_json(json.loads((run / "invariance.json").read_text()))
    assert again == result.invariance and again.run == str(run)
    config = json.loads((run / "config.json").read_text())
    assert (config["generators"], config["model"], config["data"]["source"]) == (["affine"], "cnn", "noise")
    loaded = load_model(run)
    assert torch.equal(loaded(data.x_test), result.model(data.x_test))
    assert same_bits(loaded.state_dict(), result.model.state_dict())


def test_a_baseline_leaves_a_comparison_and_a_report(tmp_path):
    data, run, net = images(), tmp_path / "run", nn.Sequential(nn.Flatten(), nn.Linear(144, 3))
    start = net[1].weight.detach().clone()
    result = learn(data, net, run=run, baseline=True, **QUICK)
    plain = result.baseline
    assert plain is not None and plain.config.method == "plain" and plain.baseline is None
    assert plain.model is not net and not torch.equal(plain.model[1].weight, start)
    assert plain.config.epochs == result.config.epochs and plain.config.seed == result.config.seed
    assert result.report == run / "report.html" and "plain" in result.report.read_text()
    assert (run / "views" / "beside.json").is_file() and (run / "baseline" / "model.safetensors").is_file()
    assert [row["epoch"] for row in result.metrics if "test_accuracy" in row] == [1, 2]
    saved = Invariance.from_json(json.loads((run / "baseline" / "invariance.json").read_text()))
    assert saved == plain.invariance and plain.invariance.log_evidence_without is None
    assert result.invariance.log_evidence_without == plain.invariance.log_evidence
    alone = learn(data, nn.Sequential(nn.Flatten(), nn.Linear(144, 3)), baseline=True, **QUICK)
    assert alone.report is None and alone.baseline is not None and alone.baseline.invariance.run is None
    assert [row["epoch"] for row in alone.metrics if "test_accuracy" in row] == [2]
    refused("baseline itself", learn, data, method="plain", baseline=True)
    normed = nn.Sequential(nn.Flatten(), nn.Linear(144, 3), nn.BatchNorm1d(3))
    with pytest.raises(InputError, match="BatchNorm"):  # augmented takes it; the baseline's evidence does not
        learn(data, normed, "augmented", widths={"rotation": 30.0}, baseline=True, run=tmp_path / "n", **QUICK)
    assert not (tmp_path / "n").exists()


def test_a_torch_data_set_or_its_loader(tmp_path):
    x = torch.rand(40, 1, 12, 12, generator=generator(0))
    pairs = TensorDataset(x, torch.arange(40) % 2)
    one = learn(pairs, "mlp", "plain", epochs=1, batch=10)
    other = learn(DataLoader(pairs, batch_size=10, shuffle=True), "mlp", "plain", max_epochs=1)
    assert other.config.batch == 10
    assert same_bits(one.model.state_dict(), other.model.state_dict())


def test_resume_goes_to_the_same_bits_on_the_same_data_only_and_overwrite_starts_anew(tmp_path):
    data = coordinates()
    whole = learn(data, **QUICK)
    first = learn(data, run=tmp_path / "run", **QUICK)
    resumed = learn(data, run=tmp_path / "run", resume=True, **QUICK)
    anew = learn(data, run=tmp_path / "run", overwrite=True, **QUICK)
    for other in (first, resumed, anew):
        assert same_bits(other.model.state_dict(), whole.model.state_dict())
    refused("already exists", learn, data, run=tmp_path / "run", **QUICK)
    with pytest.raises(InputError, match=r"data\.fingerprint must be as it was"):
        learn(coordinates(seed=1), run=tmp_path / "run", resume=True, **QUICK)


class StopsAfter(Progress):
    """Raises after an epoch, or when something begins after the epochs."""

    def __init__(self, at):
        self.at = at

    def epoch(self, row):
        if row["epoch"] == self.at:
            raise RuntimeError

    def stage(self, what, done=0, total=0):
        if what == self.at:
            raise RuntimeError


@pytest.mark.parametrize("at", [5, "intervals of the widths", 6, 9, "test set"])
def test_a_run_resumes_to_the_same_bits_before_and_after_its_widths_rest(tmp_path, at):
    settings = {
        "epochs": 10,
        "batch": 20,
        "generators": ("rotation",),
        "evidence_below": 9.0,
        "checkpoint_seconds": 0.0,
    }
    whole = learn(coordinates(), **settings)
    assert whole.config.learning == 5
    with pytest.raises(RuntimeError):
        learn(coordinates(), run=tmp_path / "run", callbacks=[StopsAfter(at)], **settings)
    resumed = learn(coordinates(), run=tmp_path / "run", resume=True, **settings)
    assert same_bits(resumed.model.state_dict(), whole.model.state_dict())
    assert resumed.invariance.widths == whole.invariance.widths
    assert resumed.invariance.log_evidence == whole.invariance.log_evidence


def test_only_classifiers_finish_under_less_of_the_prior():
    x = torch.randn(20, 2, generator=generator(0))
    data = Dataset(x, x[:, :1], x[:0], x[:0, :1], kind="coordinates", task="regression")
    assert prepare(data, None, "lila", None, {}).config.finish == 0
    assert prepare(data, None, "lila", None, {"finish": 0.2}).config.finish == 0.2
    assert prepare(coordinates(), None, "lila", None, {}).config.finish == 0.5


def one_image(data: Dataset) -> Dataset:
    return Dataset(data.x_train[:1], data.y_train[:1], data.x_test, data.y_test, class_names=data.class_names)


FEATURES = Dataset(torch.rand(6, 5), torch.arange(6) % 2, torch.rand(0, 5), torch.arange(0), "features")
TWO_OUTPUTS = r"must give 3 outputs, one per class; for 2 inputs it gave \[2, 2\]"
REFUSED = {
    "at least two training examples; got 1": lambda: learn(one_image(images())),
    TWO_OUTPUTS: lambda: learn(images(), nn.Sequential(nn.Flatten(), nn.Linear(144, 2))),
    "must give 3 outputs": lambda: learn(images(), nn.Linear(12, 3)),
    r"cannot take inputs of shape \[1, 12, 12\]": lambda: learn(images(), nn.Linear(5, 3)),
    "must give one tensor; it gave tuple": lambda: learn(coordinates(), nn.LSTM(2, 2)),
    "all are frozen": lambda: learn(coordinates(), small_net().requires_grad_(False)),
    "must have parameters to train": lambda: learn(coordinates(), nn.Identity()),
    "samples must be at least 1; got 0": lambda: learn(coordinates(), samples=0),
    "width rotation must be at least 0": lambda: fixed(rotation=-3.0),
    "generator must be one of rotation; .*Did you mean 'rotation'": lambda: fixed(rotatoin=3.0),
    "Did you mean 'toy_mlp'": lambda: learn(coordinates(), "toy_mpl"),
    "Did you mean 'augerino'": lambda: learn(coordinates(), method="augrino"),
    "Did you mean 'rotation'": lambda: learn(coordinates(), generators=("rotatio",)),
    "Did you mean 'epochs'": lambda: learn(coordinates(), epoch=3),
    "model 'cnn' takes images": lambda: learn(coordinates(), "cnn"),
    "device must be one that torch can use": lambda: learn(coordinates(), device="warp-drive"),
    "such data have none.*method 'plain'": lambda: learn(FEATURES),
}


def fixed(**widths):
    return learn(coordinates(), method="augmented", widths=widths)


@pytest.mark.parametrize("says", REFUSED)
def test_refused_before_training(says):
    refused(says, REFUSED[says], error=AuguryError)


def test_a_class_with_a_single_image_is_fine():
    data = images()
    y = torch.zeros(12, dtype=torch.int64)
    y[:1], y[1:6] = 2, 1
    alone = Dataset(data.x_train, y, data.x_test, data.y_test, class_names=data.class_names)
    assert len(learn(alone, method="augerino", epochs=1, samples=2).metrics) == 1


def test_a_network_is_as_it_was_when_it_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    net = small_net()
    before = net[0].weight.clone()
    refused("cannot write", learn, coordinates(), net, error=RunError, run=tmp_path / "file" / "run", **QUICK)
    assert torch.equal(net[0].weight, before)
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 5)).train()
    with pytest.raises(InputError):
        learn(coordinates(), net)
    assert net.training and net[0].num_batches_tracked == 0
