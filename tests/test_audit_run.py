"""The whole audit: verdicts on models whose truth is known, models of other people, noise floor, drift, bad input."""

import json

import numpy as np
import pytest
import torch
from kornia.feature.defmo import Bottleneck, ResNet
from torch import nn

from augury.auditing.audit import audit, examine
from augury.auditing.statistics import SetStatistics
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.models.networks import build
from augury.models.orbit import OrbitAverage
from augury.models.weight_tied import tie
from augury.records.results import Audit
from augury.transforms.affine2d import Affine2d
from augury.transforms.finite_groups import CyclicRotation
from augury.transforms.points3d import Rotation3d
from refusal import refused


def images(N=40, C=1, side=12, seed=1):
    return torch.rand(N, C, side, side, generator=generator(seed))


def dataset(N=40, classes=4):
    y = torch.arange(N) % classes
    return Dataset(images(N), y, images(N, seed=2), y, class_names=tuple(f"class {c}" for c in range(classes)))


def network(outputs=4, C=1, side=12):
    return build("mlp5", (C, side, side), outputs, generator(0))


def radial(side=12):
    """A function of the distance from the centre alone: invariant under rotations, up to interpolation."""
    axis = (torch.arange(side) + 0.5) / side * 2 - 1
    r = (axis[:, None] ** 2 + axis**2).sqrt()
    rings = torch.stack([(-3 * r**2).exp(), r * (-2 * r**2).exp(), (2 * r).cos() * (-(r**2)).exp()])
    return lambda x: torch.einsum("bhw,chw->bc", x[:, 0], rings.to(x))


def smooth_images(N=30, side=12):
    coarse = torch.rand(N, 1, 3, 3, generator=generator(3))
    fine = nn.functional.interpolate(coarse, (side, side), mode="bicubic", align_corners=True)
    axis = torch.linspace(-1, 1, side)
    return fine * torch.exp(-2 * (axis[:, None] ** 2 + axis**2))


class TestVerdicts:
    def test_a_tied_network_is_genuine_on_any_data(self):
        tied = tie(network(), CyclicRotation(4))
        found = audit(tied, dataset(), "C4", drift={"other": images(seed=9)})
        assert found.verdict == "genuine"
        assert found.LI.value < 1e-12 and found.DI.value < 1e-9 and found.agreement.value == 1
        assert found.SI.value == pytest.approx(1, abs=1e-5)
        assert set(found.drift) == {"other", "noisy", "inverted", "faded", "occluded"}
        assert all(other.SI.value > 0.9999 for other in found.drift.values())
        assert "holds on other, noisy" in found.why

    def test_the_same_network_untied_is_sensitive(self):
        found = audit(network(), dataset(), "C4")
        assert found.verdict == "sensitive"
        assert found.LI.value > 0 and found.LI_relative > 0.25 and found.SI.value < 0.5
        assert "C4" in found.advice and "augury learn" in found.advice

    @pytest.mark.parametrize(
        "constant", [lambda x: torch.full((len(x), 4), 3.25), lambda x: x.flatten(1)[:, :4] * 0 + 3.25]
    )
    def test_a_constant_model_is_invariant_but_trivially_so(self, constant):
        found = audit(constant, dataset(), "C4")
        assert found.LI.value == 0 and found.agreement.value == 1 and found.LI_relative is None
        assert found.verdict == "trivially invariant"
        assert "same output for every input" in found.why and "trained" in found.advice

    def test_agreement_without_invariant_saliency_holds_only_here(self):
        """Logits that hardly move, read from pixels of one corner: the answers agree, the reasons do not."""
        x = images(60)
        label = torch.arange(60) % 4
        x[..., 5:7, 5:7] = label[:, None, None, None] / 1.5  # symmetric under C4, and decisive

        def model(x):
            level = x[:, 0, 5:7, 5:7].mean((1, 2))
            centre = -((level[:, None] - torch.arange(4) / 1.5) ** 2) * 40
            return centre + 2 * x[:, 0, :4, :4].flatten(1)[:, :4]

        found = audit(model, Dataset(x, label, x, label), "C4", corruptions=False)
        assert found.agreement.value > 0.9 and found.LI_relative < 0.25 and found.SI.value < 0.95
        assert found.verdict == "only on the training distribution"

    def test_a_break_under_drift_is_named(self):
        """Invariant as long as the image is dark, read from a corner once it is bright."""

        def model(x):
            bright = (x.mean((1, 2, 3)) > 0.6).to(x)[:, None]
            rings = radial()(x)
            return (1 - bright) * rings + bright * x[:, 0, 0, :3] * 50

        x = 0.5 * images(60)
        found = audit(model, x, "C4", drift={"bright": 0.5 + 0.5 * images(60, seed=7)}, corruptions=False)
        assert found.SI.value > 0.999
        assert found.verdict == "only on the training distribution"
        assert "breaks on bright" in found.why
        assert audit(model, x, "C4", corruptions=False).verdict == "genuine"


class TestNoiseFloor:
    def test_interpolation_is_not_blamed_on_the_model_and_an_exact_quarter_turn_has_no_floor(self):
        found = audit(radial(), smooth_images(), "rotation", corruptions=False, levels=4)
        at = {point.strength: point for point in found.curve}
        assert at[45].noise_floor.LI.value > 1e-7 > 1e-9 > at[90].noise_floor.LI.value
        assert at[90].noise_floor.SI.value == pytest.approx(1, abs=1e-5)
        assert at[45].noise_floor.SI.value < 0.9999
        assert found.verdict == "genuine"
        other = audit(network(3), smooth_images(), "rotation", corruptions=False, levels=4)
        assert other.verdict == "sensitive"

    def test_a_model_that_answers_differently_by_place_in_the_batch_shows_in_the_floor(self):
        net = network()

        def restless(x):
            return net(x) + 0.01 * torch.arange(len(x))[:, None] * torch.tensor([1.0, -1.0, 0.0, 0.0])

        found = audit(restless, dataset(), "C4", corruptions=False)
        assert found.noise_floor.LI.value > 0.9 * found.LI.value > 0

    def test_the_floor_is_the_measure_between_an_input_and_itself_moved_forth_and_back(self):
        net, x, group = network().double(), images(7).double(), CyclicRotation(8)
        found = audit(net, x, group, corruptions=False, floor_images=7)
        views = group.orbit(x).unbind(1)
        back = torch.stack([group.element(v, group.inverse_of(j)) for j, v in enumerate(views)], 1)[:, 1:]
        with torch.no_grad():
            expected = (net(back.flatten(0, 1)).unflatten(0, (7, 7)) - net(x)[:, None]).square().sum(-1).mean(0)
        assert [point.noise_floor.LI.value for point in found.curve] == pytest.approx(expected.tolist(), rel=1e-9)


class TestOtherPeoplesModels:
    def test_a_public_librarys_resnet_with_batchnorm_is_left_as_it_was(self):
        torch.manual_seed(0)
        net = ResNet(Bottleneck, [1, 1, 1, 1], num_classes=5, width_per_group=8)
        net.train()
        net.layer1.eval()
        before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        found = audit(net, images(8, C=3, side=24), "flip_x", drift_images=4, jacobian_images=2)
        assert found.images == 8 and found.LI.value > 0 and found.sigma_max_jacobian > 0
        assert found.verdict in ("sensitive", "only on the training distribution")
        assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
        assert net.training and net.bn1.training and not net.layer1.training

    def test_a_resnet_of_transformers_built_from_its_configuration(self):
        """BatchNorm, and outputs in an object of their own; random weights, running statistics made to differ."""
        from transformers import ResNetConfig, ResNetForImageClassification

        torch.manual_seed(0)
        config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=5)
        net = ResNetForImageClassification(config).train()
        x = images(12, C=3, side=24)
        net(x)  # a step of the running statistics
        before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        found = audit(net, x, "C4", drift_images=4, jacobian_images=2, floor_images=4)
        assert net.training and all(torch.equal(t, before[name]) for name, t in net.state_dict().items())
        with torch.no_grad():
            f = net.eval()(x).logits
            f_g = torch.stack([net(torch.rot90(x, k, (-2, -1))).logits for k in (1, 2, 3)], dim=1)
        expected = (f_g - f[:, None]).square().sum(-1).mean()
        assert found.LI.value == pytest.approx(expected.item(), rel=1e-4) and expected > 0
        assert found.agreement.value == pytest.approx((f_g.argmax(-1) == f.argmax(-1)[:, None]).float().mean())
        assert found.SI is not None and found.sigma_max_jacobian > 0 and found.sigma_max_weights
        assert found.verdict in ("sensitive", "only on the training distribution")

    def test_a_plain_function_with_and_without_gradients(self):
        def pixels(x):
            return x.flatten(1)[:, :4]

        def by_hand(x):
            return torch.from_numpy(x.detach().numpy().reshape(len(x), -1)[:, :4].copy())

        one, other = audit(pixels, images(), "C4"), audit(by_hand, images(), "C4")
        assert one.SI is not None and other.SI is None and other.sigma_max_jacobian is None
        assert one.LI == other.LI and one.verdict == other.verdict == "sensitive"
        assert one.model == "pixels" and one.sigma_max_jacobian == pytest.approx(1, rel=1e-3)

    def test_outputs_in_a_mapping_are_found(self):
        net = network()
        wrapped = audit(lambda x: {"loss": None, "logits": net(x)}, dataset(), "C4", corruptions=False)
        assert wrapped.LI.value == pytest.approx(audit(net, dataset(), "C4", corruptions=False).LI.value)


class TestTheRecord:
    def test_json_has_what_was_promised_and_comes_back(self):
        found = audit(network(), dataset(), "C4")
        values = json.loads(found.dumps())
        for name in ("LI", "DI", "SI", "agreement"):
            assert set(values[name]) == {"value", "stderr"}
            assert set(values["noise_floor"][name]) == {"value", "stderr"}
        assert values["group"] == "C4" and values["images"] == 40 and values["sigma_max_jacobian"] > 0
        assert Audit.from_json(values) == found

    def test_classes_strengths_and_accuracies_add_up(self):
        found = audit(network(), dataset(), "C4", corruptions=False)
        assert list(found.per_class) == [f"class {c}" for c in range(4)]
        assert sum(s.images for s in found.per_class.values()) == 40
        mean = sum(s.LI.value * s.images for s in found.per_class.values()) / 40
        assert mean == pytest.approx(found.LI.value)
        assert [p.strength for p in found.curve] == [90, 180, 270] and found.curve[0].unit == "deg"
        assert sum(p.scores.LI.value for p in found.curve) / 3 == pytest.approx(found.LI.value)
        with torch.no_grad():
            data, net = dataset(), network()
            right = (net(data.x_test).argmax(1) == data.y_test).float().mean().item()
        assert found.accuracy == pytest.approx(right) and found.accuracy_moved is not None

    def test_without_labels_classes_are_predictions_and_there_is_no_accuracy(self):
        found = audit(network(), images(), "C4", corruptions=False)
        predicted = network()(images()).argmax(1).bincount(minlength=4).tolist()
        counts = {str(c): n for c, n in enumerate(predicted) if n}
        assert {name: s.images for name, s in found.per_class.items()} == counts
        assert found.accuracy is None

    def test_the_worst_inputs_are_the_worst(self):
        net, data = network(), dataset()
        seen = examine(net, data, "C4", worst=3, corruptions=False, batch=32)
        with torch.no_grad():
            views = CyclicRotation(4).orbit(data.x_test)[:, 1:]
            LI = (net(views.flatten(0, 1)).unflatten(0, (40, 3)) - net(data.x_test)[:, None]).square().sum(-1)
        expected = LI.amax(1).topk(3)
        assert [w.index for w in seen.audit.worst] == expected.indices.tolist()
        assert [w.LI for w in seen.audit.worst] == pytest.approx(expected.values.tolist(), rel=1e-4)
        for record, case in zip(seen.audit.worst, seen.cases, strict=True):
            assert torch.equal(case.x, data.x_test[record.index])
            assert torch.equal(case.x_g, views[record.index, round(record.strength / 90) - 1])
            assert case.found == record and case.m.shape == case.m_g.shape == case.x.shape
            assert record.label == data.class_names[int(data.y_test[record.index])]

    def test_regression_has_no_predictions(self):
        y = torch.rand(40, 3, generator=generator(5))
        data = Dataset(images(), y, images(seed=2), y, task="regression")
        found = audit(network(3), data, "C4")
        assert found.DI is None and found.agreement is None and found.per_class == {}
        assert found.verdict == "sensitive"
        assert audit(tie(network(3), CyclicRotation(4)), data, "C4").verdict == "genuine"

    def test_batches_change_nothing_and_seeds_repeat(self):
        def figures(**given):
            found = audit(network().double(), images().double(), "rotation", images=20, corruptions=False, **given)
            return found.LI.value, found.SI.value, found.noise_floor.LI.value

        small, large = (audit(network(), dataset(), "C4", corruptions=False, batch=b) for b in (8, 4096))
        assert small.LI.value == pytest.approx(large.LI.value, rel=1e-5)
        assert figures(seed=3) == figures(seed=3)

    def test_an_orbit_average_is_asked_about_its_own_transformation(self):
        transform = Affine2d((12, 12), "rotation")
        transform.set_widths({"rotation": 30})
        found = audit(OrbitAverage(network(), transform), dataset(), corruptions=False, levels=2)
        assert found.group == "rotation" and [p.strength for p in found.curve] == [15, 30]
        wider = audit(network(), dataset(), transform, widths={"rotation": 60.0}, corruptions=False, levels=2)
        assert [p.strength for p in wider.curve] == [30, 60]
        assert transform.describe()["rotation"] == pytest.approx(30)


def test_memory_is_that_of_a_batch(monkeypatch):
    sizes = []
    add = SetStatistics.add

    def watch(self, seen, group, labelled=False):
        sizes.append(seen.f_g.shape[0] * (seen.f_g.shape[1] + 1))
        add(self, seen, group, labelled)

    monkeypatch.setattr(SetStatistics, "add", watch)
    audit(network(), images(200), "C4", batch=64)
    assert max(sizes) <= 64 and len(sizes) > 10


class TestBadInput:
    @pytest.mark.parametrize(
        ("model", "says"),
        [
            (lambda x: x.flatten(1).sum(1), r"must return logits \[B, C\].*shape \[2\]"),
            (lambda x: x, r"must return logits \[B, C\].*\[2, 1, 12, 12\]"),
            (lambda x: x.flatten(1)[:1, :4], r"must return logits \[B, C\].*\[1, 4\]"),
            (lambda x: x.flatten(1)[:, :4].long(), r"torch.int64"),
            (lambda x: x.flatten(1)[:, :3], r"at least 4 outputs, one for each class.*returned 3"),
            (lambda x: [1.0], r"tensor of logits; it returned list"),
            (lambda x: x.flatten(1)[:, :4] / 0, r"NaN or infinity for 2 of 2 inputs"),
            (nn.Linear(5, 4), r"cannot take inputs of shape \[2, 1, 12, 12\]"),
            (nn.Linear, r"got the class Linear. Make one first"),
            (7, r"module or a function from inputs to logits; got int"),
        ],
    )
    def test_a_model_that_returns_something_else(self, model, says):
        refused(says, audit, model, dataset(), "C4")

    def test_transformations_inputs_and_settings_that_do_not_fit(self):
        refused(r"'rotation3d' acts on data of kind points", audit, network(), dataset(), "rotation3d")
        refused(r"Rotation3d acts on point clouds", audit, network(), dataset(), Rotation3d())
        refused("Did you mean 'rotation'", audit, network(), dataset(), "rotatoin")
        refused("name what the model should be invariant to", audit, network(), dataset())
        refused("at least two inputs", audit, network(), images(1), "C4")
        refused("at least two inputs", audit, network(), images(0), "C4")
        refused("images and drift_images must be at least 2", audit, network(), images(), "C4", images=1)
        refused("must be finite", audit, network(), images() / 0, "C4")
        refused("must be numbers", audit, network(), np.full((4, 12), "a"), "C4")
        refused("Did you mean 'images'", audit, network(), dataset(), "C4", image=3)
        refused("batch must be at least 1", audit, network(), dataset(), "C4", batch=0)
        refused("part must be one of", audit, network(), dataset(), "C4", part="validation")
        refused("Did you mean 'gradient'", audit, network(), dataset(), "C4", saliency="gradients")
