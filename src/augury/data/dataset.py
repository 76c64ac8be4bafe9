"""The one record that every reader returns and every method takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.errors import InputError, choose

KINDS = ("image", "signal", "points", "coordinates", "features")
"""What an input can be: [C, H, W], [C, T], [P, 3], [2], or any other array."""

TASKS = ("classification", "regression")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs and targets for training and test, checked once when made.

    Pixels are float32 in [0, 1]; class labels are int64 from 0; regression targets are float32 [N, D].
    """

    x_train: Float[Tensor, "N ..."]
    """Training inputs."""
    y_train: Shaped[Tensor, "N ..."]
    """Training labels or targets."""
    x_test: Float[Tensor, "M ..."]
    """Test inputs; none (M = 0) is allowed."""
    y_test: Shaped[Tensor, "M ..."]
    """Test labels or targets."""
    kind: str = "image"
    """One of `KINDS`."""
    task: str = "classification"
    """One of `TASKS`."""
    class_names: tuple[str, ...] = ()
    """A name for each class; empty for regression."""
    source: str = "arrays"
    """Where the data came from, as a person would say it."""
    planted: Mapping[str, float] = field(default_factory=dict)
    """True widths in their units by generator, where the truth was planted."""
    skipped: tuple[str, ...] = ()
    """Files that a reader was told to pass over because they could not be read."""

    def __post_init__(self) -> None:
        choose("kind", self.kind, KINDS)
        choose("task", self.task, TASKS)
        for part in ("train", "test"):
            check_pair(getattr(self, f"x_{part}"), getattr(self, f"y_{part}"), self.task, part)
        if len(self.x_train) == 0:
            raise InputError("the training set must hold at least one example; got none.")
        if len(self.x_test) and self.x_test.shape[1:] != self.x_train.shape[1:]:
            raise InputError(
                f"training and test inputs must have one shape; got {list(self.x_train.shape[1:])} "
                f"and {list(self.x_test.shape[1:])}. Resize one of them."
            )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.x_train.shape[1:])

    @property
    def n_outputs(self) -> int:
        """How many outputs a network needs: classes, or dimensions of the target."""
        return len(self.class_names) if self.task == "classification" else self.y_train.shape[1]

    def subset(self, n: int, seed: int = 0) -> Self:
        """Return the record with n training examples drawn at random; the test set stays whole.

        Parameters
        ----------
        n
            How many to keep.
        seed
            Seed of the draw.

        Returns
        -------
        Self
            The smaller data set.
        """
        if not 1 <= n <= len(self.x_train):
            raise InputError(f"subset must be between 1 and {len(self.x_train)} (all); got {n}.")
        keep = torch.randperm(len(self.x_train), generator=torch.Generator().manual_seed(seed))[:n]
        return replace(self, x_train=self.x_train[keep], y_train=self.y_train[keep])


def check_pair(x: Tensor, y: Tensor, task: str, part: str) -> None:
    """Raise unless inputs and targets of one part fit each other and are finite.

    Parameters
    ----------
    x, y
        Inputs and targets.
    task
        One of `TASKS`.
    part
        "train" or "test", for the message.
    """
    if len(x) != len(y):
        raise InputError(f"{part}: inputs and labels must be of one length; got {len(x)} and {len(y)}.")
    if not torch.isfinite(x).all():
        where = int((~torch.isfinite(x)).flatten(1).any(1).nonzero()[0, 0])
        raise InputError(
            f"{part}: inputs must be finite; example {where} holds NaN or infinity. Remove or repair it."
        )
    if task == "classification" and y.dtype != torch.int64:
        raise InputError(f"{part}: class labels must be integers; got {y.dtype}. For real targets, say task='regression'.")
    if task == "regression" and not torch.isfinite(y).all():
        raise InputError(f"{part}: targets must be finite; at least one is NaN or infinite.")
