"""The methods by name; torch is loaded only when one is made, so that the command line can list them at once."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from augury.config.learn import LearnConfig
from augury.core.errors import InputError, choose

if TYPE_CHECKING:
    from torch import Tensor, nn

    from augury.training.learner import Learner
    from augury.transforms.base import Transform


@dataclass(frozen=True)
class Method:
    """One row of the table."""

    summary: str  # what it does, in a line
    learner: str  # where it is in `augury.methods`: a class (net, transform, config, task, N)
    needs_transform: bool = True  # whether a transformation is required
    needs_example: bool = False  # whether the learner needs example inputs (argument `example`)


METHODS: dict[str, Method] = {
    "augerino": Method(
        "widths and weights by one loss, with a reward for wide orbits (Benton et al., 2020)", "augerino.Augerino"
    ),
    "augmented": Method("the orbit average with given, fixed widths", "fixed_transform.Augmented"),
    "last_layer": Method(
        "LILA with the evidence of the last layer only: an ablation (Schwoebel et al., 2022)",
        "lila.LastLayer",
        needs_example=True,
    ),
    "lila": Method(
        "widths by the differentiable Laplace evidence: no validation set (Immer et al., 2022)", "lila.Lila"
    ),
    "invariant_weights": Method(
        "a shallow network, its widths by a variational bound on the evidence (van der Ouderaa and van der Wilk, 2022)",
        "invariant_weights.InvariantWeights",
    ),
    "data_augmented": Method(
        "the bare network on transformed inputs with given widths: data augmentation (paper D's DA)",
        "fixed_transform.DataAugmented",
    ),
    "regularised": Method(
        "penalises differences of the logits over the orbit until saliency is invariant (paper D's IR)",
        "regularised.Regularised",
    ),
    "weight_tied": Method(
        "first layer tied over a finite group such as C4: exactly invariant (paper D's WT)",
        "fixed_transform.TiedLearner",
    ),
    "plain": Method("no invariance: the network as it is", "plain.Plain", needs_transform=False),
}
"""Every method by its name; its defaults are in `augury.config.learn.METHOD_DEFAULTS`."""


def build(
    net: "nn.Module",
    transform: "Transform | None",
    config: LearnConfig,
    task: str,
    N: int,
    example: "Tensor | None" = None,
) -> "Learner":
    """Make the learner that the settings name."""
    row = METHODS[choose("method", config.method, METHODS)]
    if row.needs_transform and transform is None:
        raise InputError(
            f"method '{config.method}' learns the widths of transformations, and such data have none. "
            f"Pass your own (transform=...), or use method 'plain'."
        )
    extra = {"example": example} if row.needs_example else {}
    module, name = row.learner.split(".")
    make = getattr(import_module(f"augury.methods.{module}"), name)
    learner: Learner = make(net, transform, config, task, N, **extra)
    return learner
