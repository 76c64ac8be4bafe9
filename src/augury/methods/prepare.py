"""Builds a learner from data, a network, a method and settings: all checks, no training."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from augury.config.learn import METHOD_DEFAULTS, LearnConfig, method_name
from augury.config.synonyms import renamed
from augury.core.errors import InputError, choose, first_line
from augury.core.evaluation import in_evaluation
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.evidence.likelihoods import refuse_probabilities
from augury.methods.backbone import begin_from, freeze, saved_in
from augury.methods.registry import build as build_learner
from augury.models.networks import NETWORKS, that_take
from augury.models.networks import build as build_net
from augury.models.own import LogitsOf, check_module, check_output, check_transform, logits_of
from augury.models.standardised import Standardised
from augury.records.saved import CUSTOM
from augury.training.batches import streams
from augury.training.learner import Learner
from augury.transforms.base import Transform
from augury.transforms.vocabulary import build as build_transform

MODEL_FOR = {
    "image": "cnn",
    "signal": "signal_cnn",
    "closed": "outline_cnn",
    "points": "pointnet",
    "coordinates": "toy_mlp",
    "features": "mlp",
}
"""Default network for each kind of data, and for closed signals; "mlp" if the inputs are too small for it."""

GENERATORS_FOR = {
    "image": "affine",
    "signal": "signal",
    "closed": "outline",
    "points": "rotation3d",
    "coordinates": "rotation",
}
"""Default transformations for each kind of data, and for closed signals; colour images may be mirrored too."""

FOR_NUMBERS = {"finish": 0.0}
"""Defaults for regression, whose noise is learned too: the prior that the evidence chooses is right there."""

FOR_COLOUR = {"prior": "layer"}
"""Defaults for colour images: paper A has one prior precision for all weights on digits, one per tensor on CIFAR-10.
With one for all, the evidence of 1,000 photographs is below that of a guess."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run that has not begun."""

    data: Dataset  # what it learns from
    config: LearnConfig  # the settings, with everything filled in
    learner: Learner  # the method with its network, on the device of the settings


def prepare(
    data: Any, model: str | nn.Module | None, method: str, transform: Transform | None, settings: dict[str, Any]
) -> Prepared:
    """Read the data, fill in the settings, build network and learner; raise if something does not fit."""
    if isinstance(data, DataLoader):
        settings = {"batch": data.batch_size or LearnConfig.batch, **renamed(settings)}
        data = data.dataset
    if not isinstance(model, str | None):
        check_module(model)
    if transform is not None:
        check_transform(transform)
    dataset = data if isinstance(data, Dataset) else load(data, side=image_side(model, method))
    if len(dataset.x_train) < 2:
        raise InputError(
            f"learning an invariance needs at least two training examples; got {len(dataset.x_train)}. "
            f"One example cannot show what may vary."
        )
    config = _config(dataset, model, method, transform, settings)
    check_device(config.device)
    net = _net(model, dataset, config)
    transform = _transform(dataset, transform, config)
    learner = build_learner(
        net.to(config.device),
        None if transform is None else transform.to(config.device),
        config,
        dataset.task,
        len(dataset.x_train),
        dataset.x_train[:2].to(config.device),
    )
    return Prepared(dataset, config, learner)


def _net(model: str | nn.Module | None, data: Dataset, config: LearnConfig) -> nn.Module:
    """Build the network, or take the user's; then what it begins with, what is frozen, and the checks."""
    if isinstance(model, nn.Module):
        net = model
    else:
        net = build_net(config.model or "", data.input_shape, data.n_outputs, streams(config.seed)["network"])
    freeze(net, config.freeze, data.x_train[:2])
    if not isinstance(model, nn.Module) and config.standardise and data.kind in ("image", "signal"):
        net = Standardised.by(net, data.x_train)
    if config.weights:
        begin_from(net, config.weights)  # the backbone's mean and scale of inputs, too
    return checked_net(net, data)


def image_side(model: str | nn.Module | None, method: str) -> int | None:
    """Return the side to which image files are reduced for a network; none for a user's own."""
    if isinstance(model, nn.Module):
        return None
    name = model or METHOD_DEFAULTS[method_name(method)].get("model") or MODEL_FOR["image"]
    return NETWORKS[choose("model", name, NETWORKS)].side


def _config(
    data: Dataset, model: str | nn.Module | None, method: str, transform: Transform | None, settings: dict[str, Any]
) -> LearnConfig:
    """Fill in what depends on the data."""
    kind = "closed" if data.closed else data.kind
    if model is None and renamed(settings).get("weights"):
        known = saved_in(settings["weights"])[0].network
        model = known if known in NETWORKS else None
    if model is None:
        model = METHOD_DEFAULTS[method_name(method)].get("model") or MODEL_FOR[kind]
        model = model if model in that_take(data.input_shape) else "mlp"
    name = model if isinstance(model, str) else CUSTOM
    colour = data.kind == "image" and data.input_shape[0] == 3
    numbers = data.task == "regression"
    fitting = {**(FOR_COLOUR if colour else {}), **(FOR_NUMBERS if numbers else {})}
    settings = {**fitting, **settings, "model": name}
    config = LearnConfig.for_method(method, **settings).with_epochs(len(data.x_train))
    if config.generators is not None and transform is not None:
        raise InputError("give transform or generators, not both: generators only say which transform to make.")
    if config.generators is None and transform is None and data.kind in GENERATORS_FOR:
        config = replace(config, generators=(GENERATORS_FOR[kind], *["flip_x"] * colour))
    return replace(config, output=config.curvature(len(data.x_train), data.n_outputs))


def _transform(data: Dataset, transform: Transform | None, config: LearnConfig) -> Transform | None:
    if transform is None and config.generators is not None:
        transform = build_transform(config.generators, data.kind, data.input_shape, config.sampling)
    if transform is not None:
        transform.check(data.x_train[:1])
        transform.set_widths(config.widths)
        for name in config.slight:
            choose("generator in slight", name, transform.names)
    return transform


def check_device(name: str) -> None:
    """Raise unless torch can put a tensor on the device."""
    try:
        torch.empty(1, device=name).add_(1)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"device must be one that torch can use here; got '{name}' ({first_line(error)}).") from error


def checked_net(net: nn.Module, data: Dataset) -> nn.Module:
    """Raise unless the network can be trained, takes the inputs and gives one output per class or target.

    A network whose outputs are objects with `logits` is returned as one that gives these.
    """
    odd = {str(p.dtype).removeprefix("torch.") for p in net.parameters() if p.requires_grad} - {"float32"}
    if odd:
        raise InputError(f"the network's weights must be float32; some are {', '.join(sorted(odd))}. Call net.float().")
    if any(p.is_meta for p in net.parameters()):
        raise InputError("the network's weights must have values; some are on the meta device. Load them first.")
    if not any(parameter.requires_grad for parameter in net.parameters()):
        raise InputError(
            "the network must have parameters to train; it has none, or all are frozen. "
            "Unfreeze some: net.requires_grad_(True)."
        )
    output = _output(net, data)
    if not isinstance(output, torch.Tensor) and isinstance(logits_of(output), torch.Tensor):
        net, output = LogitsOf(net), logits_of(output)
    check_output(output)
    if not output.requires_grad:
        raise InputError(
            "the outputs must have gradients; they have none. Remove detach() or no_grad() from the forward pass."
        )
    shape = tuple(output.shape)
    what = "class" if data.task == "classification" else "dimension of the target"
    if shape != (2, data.n_outputs):
        raise InputError(
            f"the network must give {data.n_outputs} outputs, one per {what}; for 2 inputs it gave "
            f"{list(shape)} instead of [2, {data.n_outputs}]. Change its last layer."
        )
    if data.task == "classification":
        refuse_probabilities(output)
    return net


@torch.enable_grad()
def _output(net: nn.Module, data: Dataset) -> Any:
    try:
        with in_evaluation(net):
            return net(data.x_train[:2].to(next(net.parameters()).device))
    except Exception as error:  # a user's module may raise any exception if the inputs do not fit
        raise InputError(
            f"the network cannot take inputs of shape {list(data.input_shape)}: {first_line(error)}. "
            f"Change its first layer, or reshape the data."
        ) from error
