r"""Weight tying in the first layer: a network that is exactly invariant under a finite group (paper D).

    f(x) = rest(max_j first(g_j x)),   g_j over the whole group

The orbit of g x is the orbit of x in another order, so the maximum is the same: exactly, on any input, for any
`first`. For a linear layer, W g_j x = (g_j^-1 W) x: one set of weights, tied over the group. Paper D pools; the
maximum costs less accuracy than the mean. Only groups that permute pixels close exactly.
"""

from collections import OrderedDict

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.transforms.base import Transform
from augury.transforms.finite_groups import FiniteGroup


class WeightTied(nn.Module):
    """The first layer on every element of the orbit, the maximum over the group, then the rest."""

    def __init__(self, first: nn.Module, rest: nn.Module, group: FiniteGroup) -> None:
        super().__init__()
        self.first, self.rest, self.group = first, rest, exact_group(group)

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B C"]:
        views = self.group.orbit(x)
        each = self.first(views.flatten(0, 1)).unflatten(0, views.shape[:2])
        return self.rest(torch.amax(each, dim=1))  # amax shares the gradient of a tie, as symmetry asks


def exact_group(transform: Transform | None) -> FiniteGroup:
    """Return the transformation if weights can be tied over it, else raise."""
    if isinstance(transform, FiniteGroup) and transform.exact:
        return transform
    what = "none" if transform is None else "+".join(transform.names)
    raise InputError(
        f"weights can be tied over one finite group that moves pixels exactly: C2, C4, flip_x, flip_y, T3, ...; "
        f"got {what}. Name one (generators=('C4',)), or take method 'regularised' or 'data_augmented'."
    )


def tie(net: nn.Module, group: FiniteGroup) -> WeightTied:
    """Tie the first layer of a network over a group."""
    if isinstance(net, WeightTied):
        return net
    parts = list(net.named_children()) if isinstance(net, nn.Sequential) else []
    with_weights = [place for place, (_, part) in enumerate(parts) if any(True for _ in part.parameters())]
    if len(with_weights) < 2:
        raise InputError(
            f"to tie its first layer, a network must be an nn.Sequential with at least two parts that have weights; "
            f"got {type(net).__name__}. Split yours by hand: augury.models.weight_tied.WeightTied(first, rest, group)."
        )
    cut = with_weights[0] + 1
    return WeightTied(nn.Sequential(OrderedDict(parts[:cut])), nn.Sequential(OrderedDict(parts[cut:])), group)
