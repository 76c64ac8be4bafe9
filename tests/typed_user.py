"""A user's file with every public name: `mypy --strict` must pass, and see real types (tests/test_public_names.py)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import augury


class Gain(augury.Transform):
    kind = "signal"

    def __init__(self) -> None:
        super().__init__([augury.units.WidthSpec("gain", augury.units.FACTOR)])

    def act(self, x: Tensor, eps: Tensor) -> Tensor:
        return x[:, None] * (eps[..., 0] * self.eta[0]).exp()[..., None, None]


class Losses(augury.Progress):
    def __init__(self) -> None:
        self.losses: list[float] = []

    def epoch(self, row: Mapping[str, Any]) -> None:
        self.losses.append(float(row["loss"]))


def transformations() -> augury.Transform:
    image = augury.Compose([augury.Affine2d((28, 28), "rotation"), augury.Color(), augury.Flip("x")])
    others: list[augury.Transform] = [augury.AffineCoordinates("rotation"), augury.Rotation3d()]
    others += [augury.Signal1d(128), augury.CyclicRotation(4), augury.Translations(4, "x"), Gain()]
    others.append(augury.Correlated(augury.Affine2d((28, 28))))
    assert_type([one.describe() for one in others], list[dict[str, float]])
    assert_type(image.names, tuple[str, ...])
    return image


def learn(folder: Path) -> augury.Learned:
    data = augury.load("mnist5k", variant="rotated", subset=1000)
    assert_type(data, augury.Dataset)
    watchers = [Losses(), augury.TensorBoard(folder / "tb")]
    try:
        learned = augury.learn(data, run=folder, baseline=True, callbacks=watchers, epochs=3)
    except augury.AuguryError as error:
        raise SystemExit(str(error)) from error
    assert_type(learned.invariance, augury.Invariance)
    assert_type(learned.invariance.widths["rotation"], augury.Width)
    assert_type(learned.invariance.widths["rotation"].value, float)
    assert_type(learned.baseline, augury.Learned | None)
    assert_type(learned.model, nn.Module)
    assert_type(augury.write_report(folder), Path)
    assert_type(augury.load_model(folder), nn.Module)
    assert_type(augury.Policy.read(folder).sure(), augury.Policy)
    return learned


def own_loop(net: nn.Module, x: Tensor, y: Tensor, rng: torch.Generator) -> None:
    model = augury.OrbitAverage(augury.swap_batchnorm(net), transformations(), samples=4, samples_eval=20)
    assert_type(model.average(x, rng), Tensor)
    evidence = augury.Evidence(model, N=len(x), task="classification", samples=8)
    assert_type(evidence.penalty(), Tensor)
    assert_type(evidence.step(DataLoader(TensorDataset(x, y), batch_size=100), rng), dict[str, float])
    assert_type(evidence.value([(x, y)], rng), float)
    assert_type(augury.intervals(evidence, (x, y), rng).widths["rotation"], augury.Width)
    fresh = augury.Evidence(model, N=len(x)).to("cpu")
    fresh.load_state_dict(evidence.state_dict())
    laplace = augury.Laplace(model, augury.likelihoods.Categorical(), structure="diag")
    fit = laplace.fit([(x, y)], lambda k: k)
    assert_type(laplace.log_evidence(fit, torch.ones(1)), Tensor)
    bound = augury.NtkBound(model, augury.likelihoods.Gaussian())
    assert_type(bound.objective(x, y, torch.ones(1), N=len(x), seed=0), Tensor)


def estimators(x: Tensor, y: Tensor) -> None:
    classifier = augury.InvariantClassifier("mlp", epochs=2).fit(x, y)
    assert_type(classifier, augury.InvariantClassifier)
    assert_type(classifier.widths_, dict[str, float])
    assert_type(classifier.score(x, y), float)
    assert_type(augury.InvariantRegressor(samples=2).fit(x, y).invariance_, augury.Invariance)


def audit(model: nn.Module) -> str:
    found = augury.audit(model, "mnist5k", "C4", images=100)
    assert_type(found, augury.Audit)
    return found.verdict


def adapt(folder: Path) -> augury.Adaptation:
    amortized = augury.amortize("mnist5k", "rotation", out=folder, epochs=1)
    assert_type(amortized, augury.Amortized)
    assert_type(amortized.extractor, augury.HyperExtractor)
    adapted = augury.adapt(amortized.extractor, "mnist5k")
    assert_type(adapted, augury.Adapted)
    return adapted.adaptation
