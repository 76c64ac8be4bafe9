"""The one record that every reader returns and every method takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.rng import generator
from augury.data.checks import SHAPES, check_classes, check_pair

KINDS = tuple(SHAPES)
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
    """A name for each class, "0", "1", ... unless told; empty for regression."""
    source: str = "arrays"
    """Where the data came from, as a person would say it."""
    planted: Mapping[str, float] = field(default_factory=dict)
    """True widths in their units by generator, where the truth was planted."""
    skipped: tuple[str, ...] = ()
    """Files that a reader was told to pass over because they could not be read."""

    def __post_init__(self) -> None:
        choose("kind", self.kind, KINDS)
        choose("task", self.task, TASKS)
        if len(self.x_train) == 0:
            raise InputError("the training set must hold at least one example; got none.")
        for part in ("train", "test"):
            check_pair(getattr(self, f"x_{part}"), getattr(self, f"y_{part}"), self.kind, self.task, part)
        if len(self.x_test) and self.x_test.shape[1:] != self.x_train.shape[1:]:
            raise InputError(
                f"training and test inputs must have one shape; got {list(self.x_train.shape[1:])} "
                f"and {list(self.x_test.shape[1:])}. Resize one of them."
            )
        if self.task == "classification":
            self._check_classes()

    def _check_classes(self) -> None:
        if not self.class_names:
            highest = max(int(y.max()) for y in (self.y_train, self.y_test) if len(y))
            object.__setattr__(self, "class_names", tuple(map(str, range(highest + 1))))
        for part in ("train", "test"):
            check_classes(getattr(self, f"y_{part}"), len(self.class_names), part)
        if len(self.class_names) < 2:
            raise InputError(
                f"classification needs at least two classes; got one only ('{self.class_names[0]}'). "
                f"With a single class there is nothing to learn."
            )

    def __repr__(self) -> str:
        outputs = (
            f"{self.n_outputs} classes" if self.task == "classification" else f"{self.n_outputs} targets"
        )
        examples = f"{len(self.x_train)} + {len(self.x_test)} of {list(self.input_shape)}"
        return f"Dataset({self.source}: {examples}, {outputs})"

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.x_train.shape[1:])

    @property
    def n_outputs(self) -> int:
        """How many outputs a network needs: classes, or dimensions of the target."""
        return len(self.class_names) if self.task == "classification" else self.y_train.shape[1]

    def subset(self, n: int, seed: int = 0) -> "Dataset":
        """Return the record with n training examples drawn at random; the test set stays whole.

        Parameters
        ----------
        n
            How many to keep.
        seed
            Seed of the draw; with one seed, a smaller subset is the beginning of a larger one.

        Returns
        -------
        Dataset
            The smaller data set.
        """
        if not 1 <= n <= len(self.x_train):
            raise InputError(f"subset must be between 1 and {len(self.x_train)} (all); got {n}.")
        keep = torch.randperm(len(self.x_train), generator=generator(seed))[:n]
        return replace(self, x_train=self.x_train[keep], y_train=self.y_train[keep])
