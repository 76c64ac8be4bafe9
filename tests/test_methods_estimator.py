"""Estimators with scikit-learn's interface: with scikit-learn, and where it is not installed."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from joblib import parallel_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

import augury
from augury.core.rng import generator
from refusal import refused

pytestmark = pytest.mark.usefixtures("short_runs")

QUICK = {"model": "toy_mlp", "epochs": 2, "samples": 2, "samples_eval": 2, "batch": 20}


def plane(n=60):
    """Two rings: the label does not see a rotation."""
    rng = np.random.default_rng(0)
    angle, y = rng.uniform(-np.pi, np.pi, n), np.arange(n) % 2
    radius = 0.5 + y + rng.normal(0, 0.05, n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype(np.float32), y


@pytest.fixture(scope="module")
def fitted():
    X, y = plane()
    labels = np.array(["inner", "outer"])[y]
    longer = {"epochs": 15, "samples": 8, "settings": {"rate": 0.05}}
    estimator = augury.InvariantClassifier(**QUICK | longer)
    return estimator.fit(X, labels), X, labels


def test_what_was_learned_ends_in_an_underscore(fitted):
    estimator, X, labels = fitted
    assert estimator.classes_.tolist() == ["inner", "outer"]
    assert set(estimator.widths_) == {"rotation"} and estimator.invariance_.widths["rotation"].unit == "deg"
    assert isinstance(estimator.model_, augury.OrbitAverage) and len(estimator.metrics_) == 15
    assert estimator.n_features_in_ == 2 and estimator.score(X, labels) > 0.9


def test_predictions_probabilities_and_logits_agree(fitted):
    estimator, X, labels = fitted
    probabilities, logits = estimator.predict_proba(X), estimator.decision_function(X)
    assert probabilities.shape == (60, 2) and np.allclose(probabilities.sum(1), 1)
    assert (estimator.classes_[probabilities.argmax(1)] == estimator.predict(X)).all()
    expected = estimator.model_(torch.from_numpy(X)).detach().numpy()
    assert np.allclose(logits, expected, atol=1e-6)
    assert estimator.score(X, labels) == np.mean(estimator.predict(X) == labels)


def test_fitting_again_starts_anew_and_the_same_seed_gives_the_same():
    X, y = plane()
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    before = net[0].weight.detach().clone()
    estimator = augury.InvariantClassifier(**{**QUICK, "model": net})
    first = estimator.fit(X, y).decision_function(X)
    assert np.array_equal(first, estimator.fit(X, y).decision_function(X))
    assert torch.equal(before, net[0].weight)  # a copy is trained
    assert not np.array_equal(first, estimator.set_params(seed=1).fit(X, y).decision_function(X))


def test_parameters_come_back_unchanged_and_clones_are_unfitted(fitted):
    estimator = fitted[0]
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params() and not hasattr(copy, "model_")
    check_is_fitted(estimator)
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    assert copy.set_params(epochs=3).epochs == 3
    refused("Invalid parameter 'epoch'", copy.set_params, error=ValueError, epoch=3)


def test_it_takes_part_in_searches_cross_validation_and_pipelines():
    X, y = plane(30)
    estimator = augury.InvariantClassifier(**QUICK)
    assert is_classifier(estimator) and is_regressor(augury.InvariantRegressor())
    assert cross_val_score(estimator, X, y, cv=2).shape == (2,)
    search = GridSearchCV(estimator, {"epochs": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_["epochs"] in (1, 2) and search.best_estimator_.widths_
    pipeline = make_pipeline(FunctionTransformer(lambda X: X * 0.5), estimator).fit(X, y)
    assert pipeline.predict(X).shape == (30,)


def test_a_search_in_processes():
    search = GridSearchCV(augury.InvariantClassifier(**QUICK), {"epochs": [1]}, cv=2, n_jobs=2, error_score="raise")
    with parallel_config("loky"):
        search.fit(*plane(20))
    assert search.best_estimator_.predict(plane(20)[0]).shape == (20,)


def test_the_words_of_scikit_learn_are_understood_and_it_need_not_be_installed():
    estimator = augury.InvariantClassifier("mlp", max_iter=3, batch_size=5, learning_rate=0.1, random_state=2)
    assert (estimator.epochs, estimator.batch, estimator.rate, estimator.seed) == (3, 5, 0.1, 2)
    assert clone(estimator).get_params() == estimator.get_params()
    refused("epochs and n_epochs", augury.InvariantRegressor, epochs=1, n_epochs=1)
    code = """
import sys
sys.modules["sklearn"] = sys.modules["sklearn.base"] = None
import augury, augury.methods.widths, numpy as np
augury.methods.widths.SINGLE = (2, 0)
short = {"epochs": 1, "samples": 2, "settings": {"evidence_every": 1}}
X = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
made = augury.InvariantClassifier("toy_mlp", **short).fit(X, np.arange(20) % 2)
assert 0 <= made.score(X, made.predict(X)) <= 1
assert augury.InvariantRegressor("toy_mlp", **short).fit(X, X[:, 0]).predict(X).shape == (20,)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_rows_of_numbers_become_images_and_bytes_are_scaled_alike():
    X = torch.rand(12, 64, generator=generator(0)).numpy()
    estimator = augury.InvariantClassifier("mlp5", epochs=1, samples=2, samples_eval=2, input_shape=(1, 8, 8))
    estimator.fit(X, np.arange(12) % 3)
    assert "rotation" in estimator.widths_ and estimator.predict(X[:5]).shape == (5,)
    assert estimator.n_features_in_ == 64
    refused("needs 64 numbers per example", estimator.predict, X[:, :60])
    x = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 1), dtype=np.uint8)
    y = np.arange(12) % 2
    estimator = augury.InvariantClassifier("mlp5", epochs=1, samples=2, samples_eval=2).fit(x, y)
    assert np.allclose(
        estimator.decision_function(x), estimator.decision_function(x.astype(np.float32) / 255), atol=1e-5
    )


def test_regression_gives_targets_in_their_shape():
    X, y = plane()
    target = np.hypot(X[:, 0], X[:, 1])
    settings = {**QUICK, "epochs": 20, "samples": 8, "settings": {"rate": 0.05}}
    flat = augury.InvariantRegressor(**settings).fit(X, target)
    assert flat.predict(X).shape == (60,) and flat.score(X, target) > 0.5
    residual = ((target - flat.predict(X)) ** 2).sum() / ((target - target.mean()) ** 2).sum()
    assert flat.score(X, target) == pytest.approx(1 - residual, rel=1e-5)
    two = augury.InvariantRegressor(**QUICK).fit(X, np.stack([target, y], 1))
    assert two.predict(X).shape == (60, 2)


def test_settings_and_a_transformation_of_ones_own():
    X, y = plane(20)
    own = augury.AffineCoordinates("scale")
    settings = {"eta_steps": 1, "burn_in": 0}
    estimator = augury.InvariantClassifier(**QUICK, transform=own, settings=settings).fit(X, y)
    assert set(estimator.widths_) == {"scale_x", "scale_y"} and not own.eta.any()


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda e, X, y: e.predict(X), "must be fitted"),
        (lambda e, X, y: e.fit(X, y[:-1]), "20"),
        (lambda e, X, y: e.fit(X, y).predict(X[:, :1]), "shape of the training inputs"),
        (lambda e, X, y: e.fit(X, y).predict(X * np.nan), "finite"),
        (lambda e, X, y: e.set_params(method="lilla").fit(X, y), "Did you mean 'lila'"),
        (lambda e, X, y: e.fit(X, y * 0), "at least two classes"),
    ],
    ids=range(6),
)
def test_mistakes_are_said_in_words(act, says):
    X, y = plane(20)
    refused(says, act, augury.InvariantClassifier(**QUICK), X, y)
