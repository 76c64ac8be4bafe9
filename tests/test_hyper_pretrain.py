"""Pre-training of an extractor: the losses against slow twins, both ways of training, measured invariance, resuming."""

import math

import numpy as np
import pytest
import torch
from PIL import Image

from augury.config.hyper import AmortizeConfig, corners
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.data.unlabelled import load_images
from augury.methods.hyper.adapt import load_extractor
from augury.methods.hyper.amortize import amortize
from augury.methods.hyper.groups import parse_groups
from augury.methods.hyper.measured import measure
from augury.methods.hyper.pretraining import UNKNOWN, apart, gather, nt_xent
from augury.methods.hyper.views import Views
from augury.models.hypernetwork import HyperExtractor
from augury.records.saved import read_saved
from augury.training.run_folder import MODEL
from reference import hyper as slow
from refusal import refused
from training_doubles import KillAt, Killed

QUICK = {"encoder": "conv16", "epochs": 2, "batch": 8, "checkpoint_seconds": 0.0}


def pixels(n=24, size=12, seed=0):
    return torch.rand(n, 3, size, size, generator=generator(seed))


def digits(n=30, size=12, seed=0):
    x = torch.rand(n, 1, size, size, generator=generator(seed))
    y = torch.arange(n) % 3
    return Dataset(x, y, x[:6], y[:6])


@pytest.mark.parametrize("temperature", [0.1, 0.5])
def test_nt_xent_is_the_double_loop(temperature):
    z, other = torch.randn(2, 5, 4, generator=generator(0), dtype=torch.float64)
    assert float(nt_xent(z, other, temperature)) == pytest.approx(slow.nt_xent(z, other, temperature), rel=1e-12)
    assert float(nt_xent(3 * z, other, temperature)) == pytest.approx(float(nt_xent(z, other, temperature)))


def test_nt_xent_has_the_gradient_of_finite_differences():
    z, other = torch.randn(2, 4, 3, generator=generator(1), dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a, b: nt_xent(a, b, 0.3), (z.requires_grad_(), other.requires_grad_()))


def test_the_invariance_term_is_one_minus_the_cosine_about_the_mean():
    f, other = torch.randn(2, 5, 7, generator=generator(0), dtype=torch.float64) + 3
    mean = sum([*f, *other]) / 10
    for centred, middle in ((True, mean), (False, 0 * mean)):
        by_hand = 1 - sum(slow.cosine(a - middle, b - middle) for a, b in zip(f, other, strict=True)) / 5
        assert float(apart(f, other, centred)) == pytest.approx(by_hand, rel=1e-12)
    assert float(apart(f, f)) == pytest.approx(0, abs=1e-12)
    # Two images are far apart about the mean, although all features point one way.
    assert float(apart(f, f.roll(1, 0), centred=True)) > 0.8
    assert float(apart(f, f.roll(1, 0), centred=False)) < 0.2


def test_corners_and_settings():
    assert corners(2) == [(1, 1), (1, 0), (0, 1)]
    assert corners(1) == [(1,), (0,)]
    assert len(corners(4)) == 15 and (0, 0, 0, 0) not in corners(4)
    config = AmortizeConfig.for_method("multitask", seed=3)
    assert AmortizeConfig.from_json(config.to_json()) == config
    assert (config.encoder, config.invariance, config.loop().seed) == ("conv16", 1.0, 3)


def test_measured_invariance_is_the_cosine_image_by_image():
    extractor = HyperExtractor("conv16", ("color", "turn"), (3, 12, 12), generator(0)).double()
    x, i = pixels(6).double(), torch.tensor([[0.0, 1.0], [0.7, 0.2]], dtype=torch.float64)
    groups = parse_groups("color=channels,turn=C4")
    found = measure(extractor, x, groups, i, generator(5), samples=1)
    rng = generator(5)
    views = [Views([group])(x, [1.0], rng) for group in groups]
    order = torch.randperm(6, generator=rng)
    partner = {int(a): int(b) for a, b in zip(order, order.roll(1), strict=True)}
    assert all(a != b for a, b in partner.items())
    for m in range(2):
        net = extractor
        net.calibrate(x)
        f = net(x, i[m]).detach()
        for k, v in enumerate(views):
            g = net(v, i[m]).detach()
            mean = sum(slow.cosine(f[n], g[n]) for n in range(6)) / 6
            assert float(found.cosine[m, k]) == pytest.approx(mean, abs=1e-10)
        mean = sum(slow.cosine(f[n], f[partner[n]]) for n in range(6)) / 6
        assert float(found.random[m]) == pytest.approx(mean, abs=1e-10)
        net.calibrate(None)
    relative = (found.cosine[0, 0] - found.random[0]) / (1 - found.random[0])
    assert float(found.relative[0, 0]) == pytest.approx(float(relative))


def bars(n=90, size=12):
    """Bars to the right of the centre, whose length is their class."""
    x = 0.1 * torch.rand(n, 1, size, size, generator=generator(0))
    y = torch.arange(n) % 3
    for k in range(n):
        x[k, 0, 5:7, 6 : 8 + 2 * int(y[k])] = 1.0
    return Dataset(x, y, x[:6], y[:6])


def test_multi_task_pre_training_teaches_each_entry_its_invariance():
    x = bars().x_train * torch.eye(3)[torch.arange(90) % 3][:, :, None, None]

    def gaps(invariance):
        settings = {"epochs": 12, "batch": 30, "rate": 0.02, "centred": True}
        made = amortize(bars(), method="multitask", invariance=invariance, **settings)
        assert made.metrics[-1]["loss"] < 0.5 * made.metrics[0]["loss"]
        ends = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        seen = measure(made.extractor, x, made.groups, ends, generator(0)).cosine
        return float(seen[1, 0] - seen[0, 0]), float(seen[0, 1] - seen[1, 1])

    taught, untaught = gaps(2.0), gaps(0.0)
    assert taught[0] > 0.25 > 0.2 > untaught[0]  # rotation: views alone hardly teach it
    assert taught[1] > 0.5 > 0.3 > untaught[1]  # colour


def test_the_record_of_an_extractor_and_of_the_shared_baseline():
    made = amortize(digits(), method="multitask", **QUICK)
    known = made.saved.pretraining
    assert (known.method, made.saved.network, known.images, known.epochs) == ("multitask", "conv16", 30, 2)
    assert made.saved.groups == ("rotation", "color") and known.seconds > 0
    assert known.loss == made.metrics[-1]["loss"]
    assert not made.extractor.training and made.extractor.reference is None
    made = amortize(digits(), method="multitask", shared=True, **QUICK)
    weights = made.extractor.weights
    assert weights.first.weight.grad is not None  # trained, at the descriptor that stands for all
    i = torch.full((3, 2), 0.5)
    one = made.extractor.generate(i)["0.weight"]
    assert torch.equal(one[0], one[2]) and made.saved.pretraining.method == "multitask, shared"


def test_tasks_may_have_images_of_their_own():
    a, b = digits(10, seed=0), digits(7, seed=1)
    pile, outputs = gather({"a": a, "again": a, "b": b})
    x, y = pile.x_train, pile.y_train
    assert len(x) == 17 and outputs == (3, 3, 3)
    assert torch.equal(y[:10, 0], a.y_train.float()) and torch.equal(y[:10, 1], a.y_train.float())
    assert (y[10:, :2] == UNKNOWN).all() and (y[:10, 2] == UNKNOWN).all()
    assert torch.equal(y[10:, 2], b.y_train.float()) and torch.equal(x[10:], b.x_train)
    made = amortize({"a": a, "b": b}, "rotation,flip", "multitask", descriptors={"a": [1, 0], "b": [0, 1]}, **QUICK)
    assert math.isfinite(made.saved.pretraining.loss)


def test_contrastive_pre_training_lowers_its_loss_and_names_its_groups():
    made = amortize(pixels(32), "ventral,dorsal", encoder="resnet10_8", epochs=4, batch=16, rate=3e-3)
    assert made.metrics[-1]["loss"] < made.metrics[0]["loss"]
    assert made.saved.pretraining.transformations == {
        "ventral": "crop:20%+flip_x:50%",
        "dorsal": "jitter:1.5x@80%+greyscale:100%@20%+blur:1.5px@50%",
    }
    assert made.saved.input_shape == [3, 12, 12] and made.saved.n_outputs == 64


def test_one_descriptor_is_simclr_with_its_views_alone(monkeypatch):
    asked = []
    draw = Views.__call__
    monkeypatch.setattr(Views, "__call__", lambda self, x, i, rng: asked.append(i) or draw(self, x, i, rng))
    made = amortize(pixels(16), "ventral,dorsal", descriptors=[[0, 1]], **QUICK)
    # two batches in each epoch; the measurement at the end asks for more
    during = asked[: 2 * len(made.metrics)]
    assert set(during) == {(0.0, 1.0)}


def test_many_groups_take_a_few_descriptors_at_a_time():
    seen = []

    class Watched(HyperExtractor):
        def each(self, x, i):
            seen.append(i.clone())
            return super().each(x, i)

    import augury.methods.hyper.amortize as module

    before, module.HyperExtractor = module.HyperExtractor, Watched
    try:
        amortize(pixels(24), "rotation,flip,crop,color", **QUICK)
    finally:
        module.HyperExtractor = before
    assert {len(i) for i in seen} == {3} and len({tuple(row) for i in seen for row in i.tolist()}) > 6


@pytest.mark.parametrize("method", ["contrastive", "multitask"])
def test_a_killed_pre_training_goes_on_to_the_same_bits(tmp_path, method):
    data = pixels() if method == "contrastive" else digits()
    groups = "rotation,color" if method == "contrastive" else None
    settings = {**QUICK, "epochs": 3}
    whole = amortize(data, groups, method, **settings).extractor
    with pytest.raises(Killed):
        amortize(data, groups, method, out=tmp_path / "a", callbacks=KillAt(3, 1), **settings)
    assert not (tmp_path / "a" / MODEL).exists()
    made = amortize(data, groups, method, out=tmp_path / "a", resume=True, **settings)
    again = load_extractor(tmp_path / "a")
    assert read_saved(tmp_path / "a" / MODEL) == made.saved
    for name, tensor in whole.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    with pytest.raises(InputError, match=r"groups\.rotation must be as it was"):
        amortize(data, "rotation:20,color=hue" if groups else {"rotation": "rotation:20", "color": "channels"},
                 method, out=tmp_path / "a", resume=True, **settings)  # fmt: skip
    refused("already exists", amortize, data, groups, method, out=tmp_path / "a", **settings)


def test_an_extractor_with_an_encoder_of_ones_own_needs_it_again(tmp_path):
    def own():
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten())

    made = amortize(pixels(), "rotation,color", encoder=own(), out=tmp_path / "a", epochs=1, batch=12)
    refused("network of your own", load_extractor, tmp_path / "a")
    x, i = pixels(3), torch.tensor([1.0, 0.0])
    assert torch.equal(load_extractor(tmp_path / "a", own())(x, i), made.extractor(x, i))
    with pytest.raises(InputError, match="does not fit"):
        load_extractor(tmp_path / "a", torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.Flatten()))


def test_images_come_without_labels(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a.png", "deep/b.png", "deep/er/c.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (10, 12, 3), dtype=np.uint8)).save(tmp_path / name)
    assert load_images(tmp_path).x.shape == (3, 3, 10, 12)
    assert load_images(tmp_path, size=8, subset=2).x.shape == (2, 3, 8, 8)
    np.savez(tmp_path / "x.npz", x=rng.random((5, 8, 8, 3), dtype=np.float32))
    assert load_images(tmp_path / "x.npz").x.shape == (5, 3, 8, 8)
    assert load_images(rng.integers(0, 255, (4, 8, 8), dtype=np.uint8)).x.max() <= 1
    assert torch.equal(load_images(digits()).x, digits().x_train)
    (tmp_path / "bad.png").write_text("no image")
    refused("cannot read image", load_images, tmp_path)
    assert len(load_images(tmp_path, skip_bad=True).skipped) == 1


@pytest.mark.parametrize(
    ("data", "settings", "says"),
    [
        (pixels(1), {"groups": "rotation"}, "at least two"),
        (pixels(), {}, "name the invariance groups"),
        (pixels(), {"groups": "swirl"}, "invariance group must be one of"),
        (torch.rand(6, 1, 12, 12), {"groups": "hue"}, "no transformation of images with 1 channels"),
        (pixels(), {"groups": "rotation", "descriptors": [[1.5]]}, "in \\[0, 1\\]"),
        (pixels(), {"groups": "rotation", "descriptors": [[1, 0]]}, "one entry"),
        (pixels(), {"groups": "rotation", "descriptors": []}, "at least one descriptor"),
        (pixels(), {"groups": "rotation", "temperature": 0.0}, "temperature must be above 0"),
        (pixels(), {"groups": "rotation", "batch": 1}, "at least 2"),
        (pixels(), {"groups": "rotation", "rat": 1}, "Did you mean 'rate'"),
        (pixels(), {"groups": "rotation", "method": "simclr"}, "method must be one of"),
        (torch.rand(6, 40), {"groups": "rotation"}, "is for images"),
        ({"a": digits()}, {"method": "multitask"}, "a descriptor for each task"),
        ({}, {"method": "multitask", "groups": "flip", "descriptors": {}}, "at least one task"),
    ],
)
def test_what_cannot_be_is_refused_before_training(data, settings, says):
    refused(says, amortize, data, **{"encoder": "conv16", **settings})
