"""Batch normalisation out, group normalisation in.

Batch normalisation couples the samples of a batch: the output for one input depends on the others, so there
is no Jacobian per input, nor the curvature that the evidence needs. Group normalisation (Wu and He,
2018) normalises every input by itself, over groups of its own channels and all positions.

A network in evaluation mode for a while: no dropout, running statistics where that was asked for.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from augury.core.errors import InputError, choose

BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
MOST_GROUPS = 32
FEWEST_CHANNELS = 4


def groups_for(channels: int) -> int:
    """Return how many groups to normalise in: as many as divide the channels, up to 32, of four or more each.

    Four, because one or two numbers normalised among themselves say nothing any more (think of [B, C]); fewer
    than eight channels are one group.
    """
    most = max(1, min(MOST_GROUPS, channels // FEWEST_CHANNELS))
    return next(groups for groups in range(most, 0, -1) if channels % groups == 0)


def swap_batchnorm(model: nn.Module) -> nn.Module:
    """Return a copy of a model with every BatchNorm exchanged for a GroupNorm.

    Scale, shift and eps are kept (and their dtype, device and whether they train); running statistics are
    dropped. A trained model needs some training afterwards: its activations are scaled in another way.

    Parameters
    ----------
    model
        Any model; it is not changed.

    Returns
    -------
    nn.Module
        The copy. A layer that stood at several places still does.
    """
    for path, module in model.named_modules():
        if isinstance(module, BATCH_NORMS):
            _check(module, path or "the model")
    swapped = copy.deepcopy(model)
    if isinstance(swapped, BATCH_NORMS):
        return _group_norm(swapped)
    done: dict[int, nn.GroupNorm] = {}
    for path, module in list(swapped.named_modules(remove_duplicate=False)):
        if isinstance(module, BATCH_NORMS):
            if id(module) not in done:
                done[id(module)] = _group_norm(module)
            parent, _, name = path.rpartition(".")
            setattr(swapped.get_submodule(parent), name, done[id(module)])
    return swapped


def _check(norm: BatchNorm, path: str) -> None:
    if norm.num_features == 1 and isinstance(norm, nn.BatchNorm1d):
        raise InputError(
            f"{path} normalises a single feature, which GroupNorm would turn into 0. Replace that layer."
        )


def _group_norm(norm: BatchNorm) -> nn.GroupNorm:
    channels = norm.num_features
    group_norm = nn.GroupNorm(groups_for(channels), channels, eps=norm.eps, affine=norm.affine)
    if norm.affine:
        group_norm.weight, group_norm.bias = norm.weight, norm.bias
    return group_norm.train(norm.training)


BATCHNORM = ("refuse", "evaluate")


@contextmanager
def evaluating(net: nn.Module, batchnorm: str = "refuse") -> Iterator[None]:
    """Put the network in evaluation mode, and back as it was."""
    choose("batchnorm", batchnorm, BATCHNORM)
    coupled = [
        n for n, m in net.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training
    ]
    if coupled and batchnorm == "refuse":
        raise InputError(
            f"layer '{coupled[0]}' (BatchNorm) couples the samples of a batch, so the evidence is not a sum over "
            f"data. Say batchnorm='evaluate' to use its running statistics, or exchange it for GroupNorm: "
            f"augury.swap_batchnorm(net)."
        )
    modes = {module: module.training for module in net.modules()}
    net.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
