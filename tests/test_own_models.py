"""Models that users bring: transformers, frozen trunks, objects with logits, pickles, exports, and what is refused."""

import copy
import io
import math
import pickle
import warnings
from types import SimpleNamespace

import jaxtyping
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

import augury
from augury.core.errors import AuguryWarning
from augury.core.rng import generator
from augury.curvature.tape import covered_layers
from augury.evidence.ascent import NtkEvidence
from augury.evidence.likelihoods import Categorical, guess
from augury.methods import widths
from augury.methods.widths import intervals
from augury.models.batchnorm import frozen_norms
from augury.training.batches import Batches
from refusal import refused

pytestmark = pytest.mark.usefixtures("short_runs")

SIDE = 8
QUICK = {
    "generators": ("rotation",), "epochs": 2, "samples": 2, "samples_eval": 2, "batch": 20,
    "evidence_below": 9.0, "evidence_every": 1,
}  # fmt: skip


def images(n=60, seed=0):
    """A bright bar, upright or lying, in a random place: 2 classes."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0.0, 0.1, (n, 1, SIDE, SIDE)).astype(np.float32), np.arange(n) % 2
    for k in range(n):
        place = rng.integers(2, SIDE - 2)
        x[k, 0, :, place] += 1.0 - y[k]
        x[k, 0, place] += y[k]
    return torch.tensor(x), torch.tensor(y)


def data(n=60):
    x, y = images(n)
    return augury.Dataset(x[: n // 2], y[: n // 2], x[n // 2 :], y[n // 2 :], class_names=("up", "across"))


@pytest.fixture
def unchecked():
    """As outside of tests: no check of types at run time, which would come before our own errors."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


class ViT(nn.Module):
    """Patches, a class token, positions, one block with torch's fused attention."""

    def __init__(self, d=8, patch=4):
        super().__init__()
        self.embed = nn.Conv2d(1, d, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, d))
        self.pos = nn.Parameter(torch.zeros(1, (SIDE // patch) ** 2 + 1, d))
        self.qkv, self.out, self.norm, self.head = (
            nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d), nn.Linear(d, 2),
        )  # fmt: skip

    def forward(self, x):
        x = self.embed(x).flatten(2).mT
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return self.head((x + self.out(attended))[:, 0])


def trunk_and_head():
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten())
    return nn.Sequential(trunk.requires_grad_(False), nn.Linear(36, 2))


def small_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 2))


def own_loop(net=None):
    model = augury.OrbitAverage(net or small_net(), augury.Affine2d(SIDE, "rotation"), samples=2)
    return model, augury.Evidence(model, N=30, eta_steps=2)


# Transformers


def test_a_refusal_names_the_parameters_that_no_layer_owns():
    with pytest.raises(augury.AuguryError, match=r"the network's own parameters \(ViT: cls, pos\)"):
        covered_layers(ViT())


def test_a_transformer_learns_through_the_bound():
    learned = augury.learn(data(), ViT(), evidence="ntk", **QUICK)
    assert learned.invariance.widths["rotation"].value > 0


def ntk_findings(net, x, y):
    transform = augury.Affine2d(SIDE, "rotation")
    transform.set_widths({"rotation": 40})
    evidence = NtkEvidence(augury.OrbitAverage(net, transform, samples=4), len(x))
    return intervals(evidence, Batches(x, y, 20, torch.device("cpu")), generator(0), {})


@pytest.mark.parametrize("seed", [0, 1])
def test_a_transformer_that_knows_little_decides_nothing_through_the_bound(seed, monkeypatch):
    x, y = images()
    torch.manual_seed(seed)
    net = ViT()
    found = ntk_findings(net, x, y)
    assert found.widths["rotation"].verdict == "undecided"
    assert found.log_evidence < guess(y) and "lower bound" in found.notes[-1]
    # The guard alone does that: bars that stand or lie look "invariant" to the same network without it.
    monkeypatch.setattr(widths, "guess", lambda y: -math.inf)
    assert ntk_findings(net, x, y).widths["rotation"].verdict == "invariant"


def test_a_bound_that_beats_a_guess_may_decide():
    """Class by the mean brightness, a network that sees nothing else: a rotation changes neither."""
    x, y = images(200)
    x = torch.full_like(x, 0.0)
    x[:, :, 2:6, 2:6] = (2.0 * y - 1.0)[:, None, None, None]
    net = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1, 2, bias=False))
    with torch.no_grad():
        net[-1].weight.copy_(torch.tensor([[-20.0], [20.0]]))
    found = ntk_findings(net, x, y)
    assert found.log_evidence > guess(y) and not any("lower bound" in note for note in found.notes)


def test_the_bound_at_its_best_is_below_the_exact_evidence_and_above_the_loose_one():
    x, y = images(24)
    torch.manual_seed(0)
    net = small_net()
    model = augury.OrbitAverage(net, augury.Affine2d(SIDE, "rotation"), samples=2).eval()
    tight = augury.NtkBound(model, Categorical(), outputs_per_group=None, kernel="exact")
    best, terms = tight.at_best(x, y, 24, seed=3)
    deltas = torch.logspace(-3, 5, 161, dtype=torch.float64)
    exact = [float(tight.lower_bound([(x, y)], d[None], lambda k: 3 + k)) for d in deltas]
    assert best == pytest.approx(max(exact), abs=1e-3)
    single = augury.NtkBound(model, Categorical(), outputs_per_group=1, kernel="exact")
    loose = single.lower_bound([(x[:12], y[:12]), (x[12:], y[12:])], torch.ones(1), lambda k: 3 + k)
    assert best > float(loose) and len(terms) == 24


# Frozen parts


def test_frozen_batchnorm_needs_no_decision_and_its_statistics_stay():
    net = trunk_and_head()
    before = copy.deepcopy(net[0].state_dict())
    learned = augury.learn(data(), net, **QUICK)
    assert all(torch.equal(before[name], value) for name, value in net[0].state_dict().items())
    assert learned.invariance.log_evidence is not None
    learned = augury.learn(data(), net, "plain", **QUICK | {"batchnorm": "evaluate"})
    assert all(torch.equal(before[name], value) for name, value in net[0].state_dict().items())


def test_batchnorm_that_trains_is_still_refused_and_one_without_weights_follows_its_surroundings():
    net = trunk_and_head().requires_grad_(True)
    with pytest.raises(augury.AuguryError, match="BatchNorm"):
        augury.learn(data(), net, **QUICK)
    bare = nn.Sequential(nn.Conv2d(1, 2, 3).requires_grad_(False), nn.BatchNorm2d(2, affine=False))
    assert frozen_norms(bare) == {bare[1]}
    bare.requires_grad_(True)
    assert not frozen_norms(bare)


def test_a_frozen_trunk_of_any_kind_has_the_evidence_of_its_head():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.MultiheadAttention(SIDE, 2, batch_first=True)
            self.scale = nn.Parameter(torch.ones(SIDE))

        def forward(self, x):
            rows = x[:, 0] * self.scale
            return self.mix(rows, rows, rows, need_weights=False)[0].flatten(1)

    net = nn.Sequential(Odd().requires_grad_(False), nn.Linear(SIDE * SIDE, 2))
    learned = augury.learn(data(), net, **QUICK)
    assert learned.invariance.log_evidence is not None
    weights = augury.Evidence(learned.model, N=30).laplace.structure.blocks
    assert {block.layer for block in weights} == {"1"}


def test_a_trunk_under_no_grad_is_refused_by_what_to_do():
    class Cut(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk, self.head = nn.Linear(SIDE * SIDE, 4).requires_grad_(False), nn.Linear(4, 2)

        def forward(self, x):
            with torch.no_grad():
                h = self.trunk(x.flatten(1))
            return self.head(h)

    for evidence in ("laplace", "ntk"):
        refused(r"torch.no_grad\(\).* requires_grad_\(False\)", augury.learn, data(), Cut(), evidence=evidence, **QUICK)


def test_freeze_takes_names_beginnings_or_the_trunk():
    def frozen(words):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 4), nn.Tanh(), nn.Linear(4, 2))
        augury.learn(data(), net, "plain", freeze=words, **QUICK)
        return [name for name, p in net.named_parameters() if not p.requires_grad]

    assert frozen("trunk") == ["1.weight", "1.bias"]
    assert frozen("1.weight, 3") == ["1.weight", "3.weight", "3.bias"]
    refused("it begins with 1, 3.*'trunk'.*'10'", frozen, "10")
    refused("parameters to train", frozen, "1,3")


def test_a_run_begins_with_the_weights_of_another_and_trains_its_head(tmp_path):
    first = augury.learn(data(), "mlp5", run=tmp_path / "a", **QUICK)
    x, y = images()
    three = augury.Dataset(x, torch.arange(60) % 3, x[:0], y[:0], class_names=("a", "b", "c"))
    settings = QUICK | {"weights": str(tmp_path / "a"), "freeze": "trunk"}
    learned = augury.learn(three, run=tmp_path / "b", baseline=True, **settings)
    assert learned.config.model == "mlp5"
    theirs, ours = first.model.net.state_dict(), learned.model.net.state_dict()
    head = [name for name, value in ours.items() if value.shape != theirs[name].shape]
    assert len(head) == 2 and len(ours) == 12  # mean and scale of the inputs are the first run's, too
    for net in (learned.model.net, learned.baseline.model):
        assert all(torch.equal(v, theirs[n]) for n, v in net.state_dict().items() if n not in head)
    loaded = augury.load_model(tmp_path / "b")
    assert torch.equal(loaded(x), learned.model(x))
    refused("the name and shape", augury.learn, data(), nn.Conv2d(1, 2, 3), **settings)
    refused("the name and shape", augury.learn, data(), "mlp", **settings)  # alike are mean and scale of inputs only


# Pickles and programs


@pytest.mark.parametrize(
    "transform",
    [
        augury.Affine2d(SIDE),
        augury.Color(),
        augury.Flip("x"),
        augury.Signal1d(16),
        augury.Rotation3d(),
        augury.Correlated(augury.Affine2d(SIDE)),
        augury.Compose([augury.Affine2d(SIDE, "rotation"), augury.Flip("x")]),
    ],
    ids=lambda transform: type(transform).__name__,
)
def test_transformations_are_pickled_and_copied(transform):
    assert pickle.loads(pickle.dumps(transform)).describe() == transform.describe()
    assert copy.deepcopy(transform).describe() == transform.describe()


def test_a_model_is_saved_whole():
    model, file, x = own_loop()[0].eval(), io.BytesIO(), images()[0]
    torch.save(model, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x), model(x))


def test_a_classifier_is_pickled_before_and_after_fitting_as_a_search_in_processes_does():
    x, y = images()
    settings = {"settings": {"evidence_below": 9.0, "evidence_every": 1}, "samples": 2, "samples_eval": 2}
    own = {"model": small_net(), "transform": augury.Affine2d(SIDE, "rotation")}
    estimator = pickle.loads(pickle.dumps(augury.InvariantClassifier(**own, epochs=1, **settings)))
    estimator.fit(x.numpy(), y.numpy())
    again = pickle.loads(pickle.dumps(estimator))
    assert (again.predict_proba(x.numpy()) == estimator.predict_proba(x.numpy())).all()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("generators", ["affine", "rotation"])
def test_an_orbit_average_of_ones_own_is_exported(generators):
    transform = augury.Affine2d(SIDE, generators)
    transform.set_widths({"rotation": 50})
    model, x = augury.OrbitAverage(small_net(), transform, samples_eval=3).eval(), images()[0]
    shapes = ({0: torch.export.Dim("batch")},)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        program = torch.export.export(model, (x[:4],), dynamic_shapes=shapes)
    assert torch.allclose(program.module()(x), model(x), atol=1e-6)


# One's own loop


def test_widths_moved_by_another_optimiser_are_said_once():
    (model, evidence), (x, y), rng = own_loop(), images(30), generator(0)
    evidence.model.transform.set_widths({"rotation": 20})  # once: no warning
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evidence.step((x, y), rng)
        evidence.step((x, y), rng)
    with pytest.warns(AuguryWarning, match=r"model.net.parameters\(\)") as said:
        for _ in range(4):
            with torch.no_grad():
                model.transform.eta.add_(0.01)
            evidence.step((x, y), rng)
    assert len(said) == 1


def test_one_state_restores_everything_that_the_evidence_learns():
    (x, y), rng = images(30), generator(0)
    model, evidence = own_loop()
    evidence.step((x, y), rng)
    state = copy.deepcopy(evidence.state_dict())
    net = copy.deepcopy(model.net.state_dict())
    value = evidence.step((x, y), generator(1))
    widths = model.transform.describe()
    model, evidence = own_loop()
    model.net.load_state_dict(net)
    evidence.load_state_dict(state)
    assert evidence.step((x, y), generator(1)) == value and model.transform.describe() == widths


def test_intervals_and_verdicts_have_a_public_call():
    (_, evidence), (x, y) = own_loop(), images(30)
    found = augury.intervals(evidence, (x, y), generator(0), slight={"rotation": 10})
    width = found.widths["rotation"]
    assert isinstance(width, augury.Width) and width.low <= width.value and width.verdict
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=10)
    assert augury.intervals(evidence, loader, generator(0)).log_evidence is not None
    refused("slight", augury.intervals, evidence, (x, y), generator(0), {"scale": 1.0})


# What a model must be


class Output(nn.Module):
    """As transformers' classifiers: an object with logits."""

    def __init__(self, wrap=lambda f: SimpleNamespace(logits=f)):
        super().__init__()
        self.layer, self.wrap = nn.Linear(SIDE * SIDE, 2), wrap

    def forward(self, x):
        return self.wrap(self.layer(x.flatten(1)))


@pytest.mark.parametrize("wrap", [lambda f: SimpleNamespace(logits=f), lambda f: {"logits": f}])
def test_a_model_that_returns_an_object_with_logits_is_taken_and_loaded(wrap, tmp_path):
    learned = augury.learn(data(), Output(wrap), run=tmp_path / "run", **QUICK)
    again, x = augury.load_model(tmp_path / "run", Output(wrap)), images()[0]
    assert torch.equal(again(x), learned.model(x))


@pytest.mark.usefixtures("unchecked")
def test_the_same_in_ones_own_loop():
    transform, (x, y) = augury.Affine2d(SIDE, "rotation"), images(30)
    refused("the class Output", augury.OrbitAverage, Output, transform)
    refused("a transformation", augury.OrbitAverage, small_net(), "rotation")
    refused("OrbitAverage", augury.Evidence, small_net(), 30)
    refused("number of training data", augury.Evidence, own_loop()[0], 0)
    refused(r"got Sequential\.", augury.OrbitAverage, transform, small_net())
    refused(r"returns net\(x\).logits", augury.OrbitAverage(Output(), transform), x)
    softmax = nn.Sequential(small_net(), nn.Softmax(1))
    refused("softmax", own_loop(softmax)[1].step, (x, y), generator(0))
    refused("a dictionary with x, y", own_loop()[1].step, [{"x": x, "y": y}], generator(0))
    refused(r"got Dataset. Pass \(data.x_train, data.y_train\)", own_loop()[1].step, data(), generator(0))
    refused("got NoneType", own_loop()[1].step, None, generator(0))
    refused("rng must be a torch.Generator; got 0", own_loop()[1].step, (x, y), 0)
    refused("an augury.Evidence; got OrbitAverage", augury.intervals, own_loop()[0], (x, y), generator(0))
    refused("got ndarray. Pass tensors", own_loop()[1].step, (x.numpy(), y.numpy()), generator(0))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("size", ["28", (3, 28, 28), 28.0, 0, torch.zeros(2, 1, 28, 28)], ids=type)
def test_the_size_of_images_is_one_number_or_two(size):
    refused("height and width", augury.Affine2d, size)
    assert augury.Affine2d(np.int64(28)).image_size == (28, 28) == augury.Affine2d([28, 28]).image_size


def test_the_command_line_begins_with_a_run_and_freezes_its_trunk(augury, npz):
    words = "--epochs 1 -S 2 -g rotation --set evidence_below=9 --set evidence_every=1 -q --no-baseline"
    quick = words.split()
    assert augury("learn", npz, "--model", "mlp5", "--run", "a", *quick)[0] == 0
    assert augury("learn", npz, "--weights", "a", "--freeze", "trunk", "--run", "b", *quick)[0] == 0
    first, second = (load_file(f"{run}/model.safetensors") for run in "ab")
    changed = {name for name in first if not torch.equal(first[name], second[name])} - {"transform.eta"}
    assert len(changed) == 2
    code, _, err = augury("learn", npz, "--freeze", "nowhere", "--run", "c", *quick)
    assert code == 2 and "'trunk'" in err
