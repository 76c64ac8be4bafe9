"""`augury.learn` behind scikit-learn's interface: `fit`, `predict`, `score`; learned attributes end in an underscore.

If scikit-learn is installed these classes inherit from its own, and work in searches, cross-validation and pipelines.
Parameters are those of the constructor, unchanged; fitting again starts from scratch.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from augury.config.learn import DEFAULT_METHOD
from augury.config.synonyms import synonyms
from augury.core.errors import InputError
from augury.data.arrays import as_array, to_inputs
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.data.rows import in_memory
from augury.methods.learn import learn
from augury.records.results import Invariance
from augury.training.evaluate import outputs_of
from augury.training.progress import Progress
from augury.transforms.base import Transform

if TYPE_CHECKING:  # scikit-learn has no types

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...

    class ClassifierMixin: ...

    class RegressorMixin: ...

else:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    except ImportError:
        BaseEstimator, ClassifierMixin, RegressorMixin = (type(name, (), {}) for name in ("Base", "C", "R"))


class InvariantEstimator(BaseEstimator):
    """The common part of classifier and regressor."""

    task: str
    """"classification" or "regression"."""
    invariance_: Invariance
    """What was learned, with intervals and verdicts."""
    widths_: dict[str, float]
    """The widths in their units."""
    model_: nn.Module
    """The trained model."""
    metrics_: list[dict[str, Any]]
    """A line for each epoch."""
    n_features_in_: int
    """Numbers in an input."""

    @synonyms
    def __init__(
        self,
        model: str | nn.Module | None = None,
        *,
        method: str = DEFAULT_METHOD,
        generators: Sequence[str] | None = None,
        transform: Transform | None = None,
        input_shape: Sequence[int] | None = None,
        kind: str | None = None,
        epochs: int | None = None,
        samples: int | None = None,
        samples_eval: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        device: str = "cpu",
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        callbacks: Sequence[Progress] = (),
    ) -> None:
        self.model, self.method = model, method
        self.generators, self.transform = generators, transform
        self.input_shape, self.kind = input_shape, kind
        self.epochs, self.samples, self.samples_eval = epochs, samples, samples_eval
        self.batch, self.rate = batch, rate
        self.device, self.seed = device, seed
        self.settings, self.callbacks = settings, callbacks

    def _fit(self, X: Any, y: Any) -> Dataset:
        x = self._shaped(as_array(X))
        data = load((x, y), task=self.task, kind=self.kind, test_fraction=0.0, seed=self.seed)
        own: dict[str, Any] = {"generators": None if self.generators is None else tuple(self.generators)}
        own |= {name: getattr(self, name) for name in ("epochs", "samples", "samples_eval", "batch", "rate")}
        learned = learn(
            data,
            deepcopy(self.model),
            self.method,
            transform=deepcopy(self.transform),
            callbacks=self.callbacks,
            device=self.device,
            seed=self.seed,
            **{name: value for name, value in own.items() if value is not None},
            **dict(self.settings or {}),
        )
        self.invariance_, self.model_, self.metrics_ = learned.invariance, learned.model, learned.metrics
        self.widths_ = {name: width.value for name, width in learned.invariance.widths.items()}
        self.n_features_in_ = int(np.prod(x.shape[1:]))
        self._kind, self._shape = data.kind, data.input_shape
        return data

    def _shaped(self, x: np.ndarray) -> np.ndarray:
        if self.input_shape is None:
            return x
        columns = int(np.prod(tuple(self.input_shape)))
        if x.ndim < 1 or x[:1].size != columns * len(x[:1]):
            raise InputError(
                f"input_shape {tuple(self.input_shape)} needs {columns} numbers per example; got an array of shape "
                f"{list(x.shape)}."
            )
        return x.reshape(len(x), *self.input_shape)

    def _outputs(self, X: Any) -> Tensor:
        if not hasattr(self, "model_"):
            raise InputError(f"this {type(self).__name__} must be fitted before it can predict. Call fit(X, y) first.")
        x = in_memory(to_inputs(self._shaped(as_array(X)), self._kind))
        if tuple(x.shape[1:]) != self._shape:
            raise InputError(
                f"inputs must have the shape of the training inputs, {list(self._shape)}; got {list(x.shape[1:])}."
            )
        if not bool(torch.isfinite(x).all()):
            raise InputError("inputs must be finite; some are NaN or infinite. Remove or repair them.")
        return outputs_of(self.model_, x)


class InvariantClassifier(ClassifierMixin, InvariantEstimator):
    """A classifier that learns which transformations do not change the labels, and is invariant to them.

    After `fit`: `widths_` (in degrees, pixels, factors), `invariance_` (with intervals and verdicts), `model_`,
    `classes_`, `metrics_` (a line per epoch), `n_features_in_`.

    Parameters
    ----------
    model, method, generators, transform, epochs, samples, samples_eval, batch, rate, device, seed, callbacks
        As for `augury.learn`; a copy of a model of your own is trained.
    input_shape
        Shape of one input, if X holds rows of numbers.
    kind
        Kind of the data: "image", "signal", ... Default: inferred from the shape.
    settings
        Further settings for `augury.learn`.
    """

    task = "classification"
    classes_: np.ndarray
    """The labels, sorted."""

    def fit(self, X: Any, y: Any) -> "InvariantClassifier":
        """Learn widths and weights from inputs [N, ...] and labels [N], whole numbers or text.

        Images are bytes, or floats in [0, 1].
        """
        labels = as_array(y)
        self._fit(X, labels)
        self.classes_ = np.unique(labels.ravel())
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the logits [N, classes]."""
        return self._outputs(X).numpy()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class [N, classes], in the order of `classes_`."""
        return self._outputs(X).double().softmax(1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class [N], as the labels were given to `fit`."""
        which = self._outputs(X).argmax(1).numpy()
        return self.classes_[which]

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy."""
        return float(np.mean(self.predict(X) == as_array(y).ravel()))


class InvariantRegressor(RegressorMixin, InvariantEstimator):
    """A regressor that learns which transformations do not change the targets, and is invariant to them.

    Targets are standardised inside; predictions and evidence are in their own units. After `fit`: `widths_`,
    `invariance_`, `model_`, `metrics_`, `n_features_in_`.

    Parameters
    ----------
    model, method, generators, transform, epochs, samples, samples_eval, batch, rate, device, seed, callbacks
        As for `augury.learn`.
    input_shape, kind, settings
        As for `InvariantClassifier`.
    """

    task = "regression"

    def fit(self, X: Any, y: Any) -> "InvariantRegressor":
        """Learn widths and weights from inputs [N, ...] and targets [N] or [N, D]."""
        targets = as_array(y)
        self._fit(X, targets)
        self._flat = targets.ndim == 1
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted targets [N] or [N, D], as they were given to `fit`."""
        found: np.ndarray = self._outputs(X).numpy()
        return found[:, 0] if self._flat else found

    def score(self, X: Any, y: Any) -> float:
        """Return the coefficient of determination R^2, averaged over targets."""
        truth = as_array(y).astype(np.float64).reshape(len(as_array(y)), -1)
        residual = ((truth - self.predict(X).reshape(truth.shape)) ** 2).sum(0)
        total = ((truth - truth.mean(0)) ** 2).sum(0)
        return float(np.mean(1 - residual / np.where(total > 0, total, 1.0)))
