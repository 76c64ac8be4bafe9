"""Targets of a regression are standardised inside; errors, evidence and models are in the user's units."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.export.program import export_model
from augury.methods.estimators import InvariantRegressor
from augury.methods.hyper.adapt import adapt
from augury.methods.learn import learn
from augury.records.saved import SavedModel
from augury.report.page import write_report
from augury.training.saved_model import load_model, save_model
from refusal import refused
from training_doubles import KillAt, Killed

MEAN, SD, N = 200_000.0, 5_000.0, 40
QUICK = {"epochs": 3, "batch": 20, "samples": 2, "samples_eval": 2, "seed": 1}
METHODS = ("lila", "invariant_weights", "augerino", "plain", "data_augmented")


def by_hand(kind: str = "coordinates") -> Dataset:
    """Targets that were standardised by hand."""
    x = torch.randn(N + 10, *{"coordinates": (2,), "image": (1, 8, 8)}[kind], generator=generator(0))
    y = x.flatten(1)[:, :1].square() + 0.1 * torch.randn(len(x), 1, generator=generator(1))
    z = (y - y[:N].mean()) / y[:N].std(correction=0)
    return Dataset(x[:N], z[:N], x[N:], z[N:], kind, "regression")


def in_euros(data: Dataset) -> Dataset:
    return replace(data, y_train=MEAN + SD * data.y_train, y_test=MEAN + SD * data.y_test)


def options(method: str) -> dict:
    return QUICK | ({"widths": {"rotation": 20.0}} if method == "data_augmented" else {})


@pytest.mark.parametrize("method", METHODS)
def test_a_run_in_other_units_is_the_same_run(method):
    z = by_hand()
    own, euros = (learn(data, method=method, **options(method)) for data in (z, in_euros(z)))
    a, b = own.invariance, euros.invariance
    for name, width in a.widths.items():
        assert b.widths[name].value == pytest.approx(width.value, rel=1e-3, abs=1e-4)
        assert b.widths[name].verdict == width.verdict
    assert b.test_error == pytest.approx(SD * a.test_error, rel=1e-3)
    assert torch.allclose(euros.model(z.x_test), MEAN + SD * own.model(z.x_test), atol=1e-3 * SD)
    if a.log_evidence is not None:
        assert b.log_evidence == pytest.approx(a.log_evidence - N * math.log(SD), abs=0.05)
    for before, after in zip(own.metrics, euros.metrics, strict=True):
        for name in {"log_evidence", "log_likelihood"} & before.keys():
            assert after[name] == pytest.approx(before[name] - N * math.log(SD), abs=0.05)


@pytest.mark.parametrize("method", ["lila", "invariant_weights", "plain"])
def test_a_saved_a_loaded_and_an_exported_model_predict_in_units(tmp_path, method):
    data = in_euros(by_hand("image"))
    model = {"invariant_weights": None}.get(method, "mlp")
    learned = learn(data, model, method, run=tmp_path / "run", generators=("rotation",), **QUICK)
    expected = learned.model(data.x_test)
    assert (expected - MEAN).abs().max() < 10 * SD
    loaded = load_model(tmp_path / "run")
    assert torch.allclose(loaded(data.x_test), expected)
    exported = export_model(tmp_path / "run", tmp_path / "out")
    program = torch.export.load(exported.program).module()
    assert torch.allclose(program(data.x_test), expected, rtol=1e-5)


def test_a_resumed_run_ends_in_units_bit_for_bit(tmp_path):
    data = in_euros(by_hand())
    whole = learn(data, run=tmp_path / "whole", checkpoint_seconds=0.0, **QUICK)
    with pytest.raises(Killed):
        learn(data, run=tmp_path / "cut", callbacks=KillAt(2), checkpoint_seconds=0.0, **QUICK)
    cut = learn(data, run=tmp_path / "cut", resume=True, checkpoint_seconds=0.0, **QUICK)
    assert cut.invariance.log_evidence == whole.invariance.log_evidence
    assert torch.equal(cut.model(data.x_test), whole.model(data.x_test))


def test_a_network_of_ones_own_comes_back_in_units(tmp_path):
    data = in_euros(by_hand())
    learned = learn(data, nn.Linear(2, 1), "plain", run=tmp_path / "run", **QUICK)
    loaded = load_model(tmp_path / "run", nn.Linear(2, 1))
    assert torch.equal(loaded(data.x_test), learned.model(data.x_test))


def test_a_run_from_before_the_scaling_is_read_as_it_is_but_not_resumed(tmp_path):
    data, run = in_euros(by_hand()), tmp_path / "run"
    learn(data, nn.Linear(2, 1), "plain", run=run, **QUICK)
    net = nn.Linear(2, 1)
    old = {"kind": "network", "network": "custom", "input_shape": [2], "n_outputs": 1, "data_kind": "coordinates"}
    save_model(run / "model.safetensors", net, SavedModel.from_json(old | {"task": "regression"}))
    config = json.loads((run / "config.json").read_text())
    del config["data"]["targets"]
    (run / "config.json").write_text(json.dumps(config))
    assert torch.equal(load_model(run, nn.Linear(2, 1))(data.x_test), net(data.x_test))
    assert write_report(run).is_file()
    message = "data.targets must be as it was: None; got 'standardised'"
    refused(message, learn, data, nn.Linear(2, 1), "plain", run=run, resume=True, **QUICK)
    refused("a mean and a scale for each", SavedModel.from_json, old | {"target_mean": [1.0]})


def test_the_regressor_predicts_in_units():
    data = in_euros(by_hand())
    x, y = data.x_train.numpy(), data.y_train[:, 0].numpy()
    fitted = InvariantRegressor(method="plain", epochs=60, rate=0.05, kind="coordinates").fit(x, y)
    assert np.abs(fitted.predict(x).mean() - MEAN) < SD and fitted.score(x, y) > 0.5


def test_the_evidence_of_an_adapted_head_is_in_units():
    from adapt_doubles import extractor, task

    net, data = extractor(), task(0, kind="regression")
    large = replace(data, y_train=MEAN + SD * data.y_train, y_test=MEAN + SD * data.y_test)
    descriptor = [0.0] * net.K
    a, b = (adapt(net, d, descriptor=descriptor).adaptation for d in (data, large))
    per_output = len(data.y_train) * data.n_outputs
    assert b.log_evidence == pytest.approx(a.log_evidence - per_output * math.log(SD), abs=0.1)
