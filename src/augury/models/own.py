"""Networks that users bring: what they must be, and those whose outputs are objects."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.transforms.base import Transform


def check_module(net: object) -> None:
    """Raise unless `net` is a module, with the reason why it is none."""
    if isinstance(net, torch.jit.ScriptModule) or hasattr(net, "_orig_mod"):
        raise InputError(
            "the network must be the original module, not a compiled or scripted one: its layers are hidden."
        )
    if isinstance(net, nn.Module):
        return
    name = getattr(net, "__name__", type(net).__name__)
    if isinstance(net, type):
        got = f"the class {name} itself. Make one: {name}(...)"
    elif isinstance(net, Mapping):
        got = "a dictionary, such as a state dict: weights without a network. Build it and call net.load_state_dict"
    elif callable(net):
        got = f"the function {name}, whose weights cannot be seen. Put it into an nn.Module that holds them"
    else:
        got = f"{name}. Wrap it in one, or take a network by its name"
    raise InputError(f"the network must be an instance of torch.nn.Module; got {got}.")


def check_transform(transform: object) -> None:
    """Raise unless `transform` is a transformation."""
    if not isinstance(transform, Transform):
        raise InputError(
            f"transform must be a transformation, such as augury.Affine2d((28, 28)); got "
            f"{type(transform).__name__ if isinstance(transform, nn.Module) else repr(transform)}."
        )


class LogitsOf(nn.Module):
    """A network whose outputs are objects or dictionaries with `logits`, as those: one tensor."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return logits_of(self.net(x))


def logits_of(output: Any) -> Any:
    """Return the logits that an object or a dictionary holds; else the output itself."""
    if isinstance(output, Mapping):
        return output.get("logits", output)
    return getattr(output, "logits", output)


def check_output(output: object) -> None:
    """Raise unless a network gave one tensor."""
    if isinstance(output, Tensor):
        return
    what, take = type(output).__name__, ", a tensor"
    if isinstance(output, tuple | list):
        what, take = f"{what} of {len(output)}", "[0]"
    elif isinstance(output, Mapping):
        what, take = f"{what} of {', '.join(map(str, output))}", f"[{next(iter(output), '')!r}]"
    take = ".logits" if isinstance(logits_of(output), Tensor) else take
    raise InputError(
        f"the network must give one tensor; it gave {what}. Wrap it in a module whose forward returns net(x){take}."
    )
