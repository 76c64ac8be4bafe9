"""What must hold before training starts: checked once, at the boundary."""

import torch
from torch import nn

from augury.core.errors import InputError
from augury.data.dataset import Dataset


def check_size(data: Dataset) -> None:
    """Raise unless there are at least two training examples."""
    if len(data.x_train) < 2:
        raise InputError(
            f"learning an invariance needs at least two training examples; got {len(data.x_train)}. "
            f"One example cannot show what may vary."
        )


def check_device(name: str) -> None:
    """Raise unless torch can put a tensor on the device."""
    try:
        torch.empty(1, device=name).add_(1)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device must be one that torch can use here; got '{name}' ({reason}).") from error


def check_net(net: nn.Module, data: Dataset) -> None:
    """Raise unless the network can be trained, takes the inputs and gives one output per class or target."""
    if not any(parameter.requires_grad for parameter in net.parameters()):
        raise InputError(
            "the network must have parameters to train; it has none, or all are frozen. "
            "Unfreeze some: net.requires_grad_(True)."
        )
    shape = _output_shape(net, data)
    what = "class" if data.task == "classification" else "dimension of the target"
    if shape != (2, data.n_outputs):
        raise InputError(
            f"the network must give {data.n_outputs} outputs, one per {what}; for 2 inputs it gave "
            f"{list(shape)} instead of [2, {data.n_outputs}]. Change its last layer."
        )


@torch.no_grad()
def _output_shape(net: nn.Module, data: Dataset) -> tuple[int, ...]:
    was_training, x = net.training, data.x_train[:2]
    device = next(net.parameters()).device
    try:
        output = net.eval()(x.to(device))
    except Exception as error:  # a user's module may raise anything when the inputs do not fit
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"the network cannot take inputs of shape {list(data.input_shape)}: {reason}. "
            f"Change its first layer, or reshape the data."
        ) from error
    finally:
        net.train(was_training)
    if not isinstance(output, torch.Tensor):
        raise InputError(f"the network must give one tensor; it gave {type(output).__name__}.")
    return tuple(output.shape)
