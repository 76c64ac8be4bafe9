"""The tangent kernel of a group of data: one Gram matrix for each prior precision.

In function space the Gauss-Newton determinant is that of a kernel between pairs i = (datum n, column c). With R_c the
columns of a root of Lambda and theta_l the parameters that share the prior precision delta_l,

    log|J^T Lambda J + P| - log|P|  =  log|I + sum_l Q_l / delta_l|,     Q_l = J_l J_l^T,
    row i of J_l = d <R_c, f_n> / d theta_l,     R_c held fixed.

The Q_l know nothing of delta or of the observation noise, so both are learned from the same Q_l in closed form.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from augury.core.errors import InputError, choose
from augury.curvature.structure import PRIORS

Root = Callable[[Tensor, Tensor], Tensor]
"""Outputs f and a combination r of columns [B, C] -> R r [B, C]."""

Subset = Int[Tensor, " _"]
"""Which columns of the root a group looks at."""


class Precisions:
    """Which prior precision each trainable parameter of a network has."""

    def __init__(self, net: nn.Module, prior: str = "scalar") -> None:
        self.prior = choose("prior", prior, PRIORS)
        self.parameters = {name: p for name, p in net.named_parameters() if p.requires_grad}
        if not self.parameters:
            raise InputError(
                "the network has no trainable parameters. Unfreeze some with requires_grad_(True)."
            )
        self.names = list(dict.fromkeys(self._owner(name) for name in self.parameters))
        self.index = {name: self.names.index(self._owner(name)) for name in self.parameters}

    def _owner(self, parameter: str) -> str:
        if self.prior == "scalar":
            return "all"
        return parameter.rpartition(".")[0] if self.prior == "layer" else parameter

    def gathered(self, grams: Mapping[str, Float[Tensor, "n n"]]) -> Float[Tensor, "L n n"]:
        """Return Q_l for every prior precision from the Gram matrices of single parameters."""
        per_precision: list[list[Tensor]] = [[] for _ in self.names]
        for name, gram in grams.items():
            per_precision[self.index[name]].append(gram)
        return torch.stack([torch.stack(same).sum(0) for same in per_precision])

    def penalty(self, delta: Float[Tensor, " L"]) -> Float[Tensor, ""]:
        """Return theta^T P theta / 2."""
        if len(delta) != len(self.names):
            raise InputError(
                f"prior='{self.prior}' has {len(self.names)} precisions ({', '.join(self.names)}); got {len(delta)}. "
                f"Give delta one entry for each."
            )
        squares = [p.detach().double().square().sum() for p in self.parameters.values()]
        where = torch.tensor(list(self.index.values()), device=delta.device)
        return torch.stack(squares) @ delta.double()[where] / 2


class Kernel(ABC):
    """A way to the Gram matrices of a network's Jacobian; a final class per file."""

    def __init__(self, net: nn.Module, precisions: Precisions) -> None:
        self.net, self.precisions = net, precisions

    @abstractmethod
    def group(
        self, views: Float[Tensor, "R ..."], S: int, root: Root, subsets: Sequence[Subset], graph: bool
    ) -> tuple[Float[Tensor, "M C"], list[Float[Tensor, "L _ _"]]]:
        """Return the averaged outputs of a group of data and, for each subset of columns, the Q_l."""


def unit_columns(subset: Subset, f: Float[Tensor, "M C"]) -> Float[Tensor, "m C"]:
    """Return the unit vectors that pick the columns of a subset."""
    return F.one_hot(subset.to(f.device), f.shape[-1]).to(f)


def gram(rows: Float[Tensor, "n ..."], columns: int = 2**17) -> Float[Tensor, "n n"]:
    """Return rows rows^T in double precision, which keeps it positive semi-definite to rounding."""
    parts = [part.double() for part in rows.flatten(1).split(columns, dim=1)]
    return torch.stack([part @ part.mT for part in parts]).sum(0)


def log_det(kernel: Float[Tensor, "n n"]) -> Float[Tensor, ""]:
    """Return log|I + kernel|."""
    eye = torch.eye(len(kernel), dtype=kernel.dtype, device=kernel.device)
    return 2 * torch.linalg.cholesky(eye + kernel).diagonal().log().sum()


def refuse_dropout(net: nn.Module) -> None:
    """Raise if the network drops activations at random: its Jacobian would belong to no one function."""
    for name, module in net.named_modules():
        chance = 0.0
        if isinstance(module, nn.modules.dropout._DropoutNd):
            chance = module.p
        elif isinstance(module, (nn.MultiheadAttention, nn.RNNBase)):
            chance = module.dropout
        if module.training and chance > 0:
            raise InputError(
                f"layer '{name}' ({type(module).__name__}) drops activations at random (p = {chance:g}), so that the "
                f"network is a new function at each call and has no evidence. Set its p to 0, or call net.eval() "
                f"before the evidence."
            )
