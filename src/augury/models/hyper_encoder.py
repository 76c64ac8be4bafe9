"""What a `HyperExtractor` does to an encoder when it is made: look at it, and take its convolutions' weights out."""

from collections.abc import Sequence

import torch
from torch import nn

from augury.core.errors import InputError

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def group_names(groups: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the invariance groups, or raise unless there are some and all differ."""
    names = tuple(groups)
    if not names or len(set(names)) < len(names) or not all(names):
        raise InputError(
            f"an extractor needs at least one invariance group, each with a name of its own; got {list(names)}."
        )
    return names


def feature_count(encoder: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Return the number of features, by a look at two inputs of zeros."""
    was_training = encoder.training
    like = next(encoder.parameters(), torch.zeros(()))
    zeros = like.new_zeros(2, *input_shape)
    try:
        with torch.no_grad():
            out = encoder.eval()(zeros)
    except RuntimeError as error:
        raise InputError(
            f"the encoder cannot take inputs of shape {list(input_shape)}: {str(error).splitlines()[0]}."
        ) from error
    finally:
        encoder.train(was_training)
    if out.ndim != 2 or len(out) != 2:
        raise InputError(
            f"an encoder must give one row of features per input, [n, d]; for 2 inputs it gave {list(out.shape)}."
        )
    return int(out.shape[1])


def vacate(encoder: nn.Module) -> dict[str, tuple[int, ...]]:
    """Take the weights out of every convolution, in place, leaving places to be filled."""
    shapes = {}
    for path, layer in encoder.named_modules():
        if isinstance(layer, CONVOLUTIONS):
            shapes[f"{path}.weight" if path else "weight"] = tuple(layer.weight.shape)
            del layer._parameters["weight"]
            layer.register_buffer("weight", torch.empty(0), persistent=False)
    if not shapes:
        raise InputError("an encoder must have convolutions, whose weights are to be generated; it has none.")
    return shapes
