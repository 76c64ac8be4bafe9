"""Networks that do not begin from scratch: the weights of another run, and layers that stay as they are."""

from pathlib import Path

import torch
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.core.evaluation import in_evaluation
from augury.curvature.tape import last_layer
from augury.records.saved import SavedModel
from augury.training.run_folder import model_file
from augury.training.saved_model import read_tensors

TRUNK = "trunk"  # word for all layers but the last


def saved_in(run: str) -> tuple[SavedModel, dict[str, Tensor]]:
    """Return the model of a run, as a record and tensors."""
    return read_tensors(model_file(Path(run)))


def begin_from(net: nn.Module, run: str) -> None:
    """Copy the weights of a run's network that have the same name and shape; the others stay."""
    _, tensors = saved_in(run)
    state = net.state_dict()
    by_prefix = [
        {name: tensors[prefix + name] for name in state if prefix + name in tensors}
        for prefix in ("net.net.", "net.", "")  # of an orbit average, whose network may be wrapped
    ]
    alike = [{n: t for n, t in found.items() if t.shape == state[n].shape} for found in by_prefix]
    best, trained = max(alike, key=len), [name for name, _ in net.named_parameters()]
    if not any(name in best for name in trained):  # mean and scale of the inputs are alike in any two networks
        raise InputError(
            f"weights must be those of a network like the one to be trained; none in {run} has the name and shape of "
            f"{next(iter(trained), 'a weight')}. Take the same network (model)."
        )
    net.load_state_dict(best, strict=False)


@torch.no_grad()
def freeze(net: nn.Module, words: str, x: Tensor) -> None:
    """Freeze parameters by the beginnings of their names, separated by commas; "trunk" for all but the last layer."""
    names = dict(net.named_parameters())
    for word in (word.strip() for word in words.split(",") if word.strip()):
        found = [name for name in names if f"{name}.".startswith(f"{word}.")]
        if not found and word == TRUNK:
            with in_evaluation(net):
                head = last_layer(net, x.to(next(net.parameters()).device))
            found = [name for name in names if not f"{name}.".startswith(f"{head}.")]
        if not found:
            tops = dict.fromkeys(name.partition(".")[0] for name in names)
            raise InputError(
                f"freeze must name layers or parameters of the network (it begins with {', '.join(tops)}; parts are "
                f"named as in named_parameters()), or be '{TRUNK}' for all but the last layer; got '{word}'."
            )
        for name in found:
            names[name].requires_grad_(False)
