"""What to do about batch normalisation: swap it for group normalisation, or use its running statistics.

Batch normalisation couples the samples of a batch: the output for one input depends on the others, so there
is no Jacobian per input, nor the curvature that the evidence needs. Group normalisation (Wu and He, 2018)
normalises every input by itself, over groups of its own channels and all positions.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from augury.core.errors import InputError, choose
from augury.core.evaluation import in_evaluation

BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
MAX_GROUPS = 32
MIN_CHANNELS = 4


def groups_for(channels: int) -> int:
    """Return the largest number of groups that divides the channels, up to 32, with four or more channels each."""
    # Four, because one or two numbers normalised among themselves carry no information (think of [B, C]).
    most = max(1, min(MAX_GROUPS, channels // MIN_CHANNELS))
    return next(groups for groups in range(most, 0, -1) if channels % groups == 0)


def swap_batchnorm(model: nn.Module) -> nn.Module:
    """Return a copy of a model with every BatchNorm replaced by a GroupNorm.

    Scale, shift and eps are kept (and their dtype, device and whether they train); running statistics are
    dropped. A trained model needs some training afterwards: its activations are scaled differently.

    Parameters
    ----------
    model
        Any model; it is not changed.

    Returns
    -------
    nn.Module
        The copy. A layer used in several places still is.
    """
    for path, module in model.named_modules():
        if isinstance(module, nn.BatchNorm1d) and module.num_features == 1:
            raise InputError(
                f"{path or 'the model'} normalises a single feature, which GroupNorm would turn into 0. "
                f"Replace that layer."
            )
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


def _group_norm(norm: BatchNorm) -> nn.GroupNorm:
    channels = norm.num_features
    group_norm = nn.GroupNorm(groups_for(channels), channels, eps=norm.eps, affine=norm.affine)
    if norm.affine:
        group_norm.weight, group_norm.bias = norm.weight, norm.bias
    return group_norm.train(norm.training)


def frozen_norms(net: nn.Module) -> set[nn.Module]:
    """Return the BatchNorm layers without a trainable parameter; those without any follow the module around them."""
    found: set[nn.Module] = set()
    for path, module in net.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            around = net.get_submodule(path.rpartition(".")[0]) if not module.affine else module
            own = [p.requires_grad for p in around.parameters()]
            if own and not any(own):
                found.add(module)
    return found


def hold_frozen(net: nn.Module) -> None:
    """Keep frozen BatchNorm in evaluation mode: its statistics belong to its weights."""
    for module in frozen_norms(net):
        module.eval()


def refuse_coupled(net: nn.Module) -> None:
    """Raise if a BatchNorm would normalise by the part of a batch that one of several processes has."""
    frozen = frozen_norms(net)
    for name, module in net.named_modules():
        if isinstance(module, BATCH_NORMS[:3]) and module not in frozen:
            raise InputError(
                f"layer '{name}' (BatchNorm) normalises by the batch, of which each of several processes has a part "
                f"only. Replace it by GroupNorm (augury.swap_batchnorm(net)) or, on CUDA, by "
                f"nn.SyncBatchNorm.convert_sync_batchnorm(net); freeze it; or train in one process."
            )


BATCHNORM = ("refuse", "evaluate")


@contextmanager
def evaluating(net: nn.Module, batchnorm: str = "refuse") -> Iterator[None]:
    """Put the network in evaluation mode for a while; BatchNorm in training mode only with "evaluate"."""
    choose("batchnorm", batchnorm, BATCHNORM)
    frozen = frozen_norms(net)
    norms = [(name, m) for name, m in net.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    coupled = [name for name, module in norms if module.training and module not in frozen]
    if coupled and batchnorm == "refuse":
        raise InputError(
            f"layer '{coupled[0]}' (BatchNorm) couples the samples of a batch, so the evidence is not a sum over "
            f"data. Use its running statistics (batchnorm='evaluate'), or replace it by GroupNorm: "
            f"augury.swap_batchnorm(net)."
        )
    with in_evaluation(net):
        yield
