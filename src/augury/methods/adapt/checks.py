"""What must hold before an extractor is adapted: checked once, at the boundary."""

import torch

from augury.core.errors import InputError
from augury.data.dataset import Dataset


def check_task(data: Dataset, input_shape: tuple[int, ...], what: str = "extractor") -> None:
    """Raise unless the data are images of the shape that an extractor takes, with something to learn in them."""
    if data.input_shape != tuple(input_shape):
        raise InputError(
            f"the {what} takes inputs of shape {list(input_shape)}; this task's are {list(data.input_shape)}. "
            f"{_hint(data.input_shape, input_shape)}"
        )
    if len(data.x_train) < 2:
        raise InputError(f"adapting needs at least two training examples; got {len(data.x_train)}.")
    if data.task == "classification" and len(torch.unique(data.y_train)) < 2:
        only = data.class_names[int(data.y_train[0])]
        raise InputError(
            f"a classification task needs training examples of at least two classes; all {len(data.y_train)} are "
            f"of class '{only}'. Add examples of another class."
        )
    if data.task == "regression" and not bool((data.y_train.std(0, correction=0) > 0).any()):
        raise InputError("a regression task needs targets that differ; all of these are alike.")


def _hint(given: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    if len(given) == len(wanted) == 3 and given[0] != wanted[0]:
        return "Give images with as many channels as it was pre-trained on."
    return f"Resize them (--size {wanted[-1]}), or pre-train an extractor for this size."
