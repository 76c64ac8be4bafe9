"""`InvariantClassifier`: classification with the manners of scikit-learn."""

from typing import Any

import numpy as np

from augury.data.pixels import as_array
from augury.methods.estimator import InvariantEstimator


class InvariantClassifier(InvariantEstimator):
    """A classifier that learns which transformations leave the labels alone, and is invariant to them.

    After `fit`: `widths_` (in degrees, pixels, factors), `invariance_` (with intervals and verdicts), `model_`,
    `classes_`, `metrics_` (a line per epoch), `n_features_in_`.

    Parameters
    ----------
    model, method, generators, transform, input_shape, kind
        As for `InvariantEstimator`.
    epochs, samples, samples_eval, batch, device, seed, settings, callbacks
        As for `InvariantEstimator`.
    """

    task = "classification"

    def fit(self, X: Any, y: Any) -> "InvariantClassifier":
        """Learn widths and weights.

        Parameters
        ----------
        X
            Inputs: arrays or tensors [N, ...]; images as bytes or as floats in [0, 1].
        y
            Labels [N]: whole numbers or text.

        Returns
        -------
        InvariantClassifier
            Itself.
        """
        labels = as_array(y)
        self._fit(X, labels)
        self.classes_ = np.unique(labels.ravel())
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the logits.

        Parameters
        ----------
        X
            Inputs.

        Returns
        -------
        np.ndarray
            [N, classes].
        """
        logits: np.ndarray = self._outputs(X).numpy()
        return logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class.

        Parameters
        ----------
        X
            Inputs.

        Returns
        -------
        np.ndarray
            [N, classes], in the order of `classes_`.
        """
        probabilities: np.ndarray = self._outputs(X).double().softmax(1).numpy()
        return probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest class.

        Parameters
        ----------
        X
            Inputs.

        Returns
        -------
        np.ndarray
            Labels as they were given to `fit`.
        """
        which = self._outputs(X).argmax(1).numpy()
        found: np.ndarray = self.classes_[which]
        return found

    def score(self, X: Any, y: Any) -> float:
        """Return the share of right answers.

        Parameters
        ----------
        X, y
            Inputs and their labels.

        Returns
        -------
        float
            From 0 to 1.
        """
        return float(np.mean(self.predict(X) == as_array(y).ravel()))
