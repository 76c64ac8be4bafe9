"""The spectrum of a network while it trains."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.auditing.spectrum import jacobian_sigmas, weight_sigmas
from augury.core.evaluation import in_evaluation
from augury.training.progress import Progress


class SpectrumTrace(Progress):
    """A callback that records the largest singular values after every epoch: `learn(..., callbacks=[trace])`."""

    def __init__(self, model: nn.Module, x: Float[Tensor, "B ..."]) -> None:
        self.model, self.x = model, x
        self.rows: list[dict[str, Any]] = []

    def start(self, method: str, epochs: int, steps: int, done: int, units: Mapping[str, str]) -> None:
        self.record(done)

    def epoch(self, row: Mapping[str, Any]) -> None:
        self.record(int(row["epoch"]))

    def record(self, epoch: int) -> None:
        """Add a row; relative means over the root mean squared distance of the logits from their mean."""
        with in_evaluation(self.model):
            sigma = float(jacobian_sigmas(self.model, self.x, iterations=100, tolerance=1e-3).mean())
            with torch.no_grad():
                distance = float(self.model(self.x).var(0).sum().sqrt())
        self.rows.append({
            "epoch": epoch,
            "sigma_max_jacobian": sigma,
            "sigma_max_relative": sigma / distance if distance else None,
            "sigma_max_weights": weight_sigmas(self.model),
        })
