"""`InvariantRegressor`: regression with the manners of scikit-learn."""

from typing import Any

import numpy as np

from augury.data.pixels import as_array
from augury.methods.estimator import InvariantEstimator


class InvariantRegressor(InvariantEstimator):
    """A regressor that learns which transformations leave the targets alone, and is invariant to them.

    Targets are taken as they are: bring them to a size near 1. After `fit`: `widths_`, `invariance_`, `model_`,
    `metrics_`, `n_features_in_`.

    Parameters
    ----------
    model, method, generators, transform, input_shape, kind
        As for `InvariantEstimator`.
    epochs, samples, samples_eval, batch, device, seed, settings, callbacks
        As for `InvariantEstimator`.
    """

    task = "regression"

    def fit(self, X: Any, y: Any) -> "InvariantRegressor":
        """Learn widths and weights.

        Parameters
        ----------
        X
            Inputs: arrays or tensors [N, ...].
        y
            Targets [N] or [N, D].

        Returns
        -------
        InvariantRegressor
            Itself.
        """
        targets = as_array(y)
        self._fit(X, targets)
        self._flat = targets.ndim == 1
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted targets.

        Parameters
        ----------
        X
            Inputs.

        Returns
        -------
        np.ndarray
            [N] or [N, D], as the targets were given to `fit`.
        """
        found: np.ndarray = self._outputs(X).numpy()
        return found[:, 0] if self._flat else found

    def score(self, X: Any, y: Any) -> float:
        """Return the coefficient of determination R^2.

        Parameters
        ----------
        X, y
            Inputs and their targets.

        Returns
        -------
        float
            1 for perfect predictions, 0 for those of the mean, averaged over targets.
        """
        truth = as_array(y).astype(np.float64).reshape(len(as_array(y)), -1)
        residual = ((truth - self.predict(X).reshape(truth.shape)) ** 2).sum(0)
        total = ((truth - truth.mean(0)) ** 2).sum(0)
        return float(np.mean(1 - residual / np.where(total > 0, total, 1.0)))
