"""Loss and test score of the two tasks: cross-entropy and accuracy, or squared error and its root."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.evaluation import in_evaluation
from augury.data.rows import Rows

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"classification": F.cross_entropy, "regression": F.mse_loss}
"""The mean loss of outputs and targets, by task."""

SCORES = {"classification": "test_accuracy", "regression": "test_error"}
"""The test score: accuracy, or root mean squared error."""


@torch.no_grad()
def outputs_of(model: nn.Module, x: Float[Tensor | Rows, "M ..."], chunk: int = 1000) -> Float[Tensor, "M D"]:
    """Return the outputs of a model in evaluation mode; its mode is restored."""
    device = next((p.device for p in model.parameters()), x.device)
    with in_evaluation(model):
        return torch.cat([model(part.to(device)).cpu() for part in x.split(chunk)])


def score_of(outputs: Float[Tensor, "M D"], y: Shaped[Tensor, "M ..."], task: str) -> dict[str, float]:
    if task == "classification":
        return {SCORES[task]: float((outputs.argmax(1) == y).double().mean())}
    return {SCORES[task]: float((outputs - y).double().square().mean().sqrt())}
