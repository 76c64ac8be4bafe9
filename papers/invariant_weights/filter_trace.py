r"""First-layer filters of a shallow network under its transformations, over training (paper B, Figures 3, 4, 6, 7).

A unit sees <W, g_s x> = <W o g_s, x>: its orbit average is that of a bank of filters W o g_1, ..., W o g_S, all turned,
shifted or scaled copies of one. Equally spaced noise gives the paper's deterministic bank, random noise the
stochastic one. Filters and widths both change with training; the noise of a trace stays.

    trace = FilterTrace(net, transform, eps)
    augury.learn(data, net, "invariant_weights", transform=transform, callbacks=trace)
    bank = trace.bank(leading_units(net, 2))      # [epochs, units, S, C, H, W]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError
from augury.models.shallow import Shallow
from augury.training.progress import Progress
from augury.transforms.affine2d import Affine2d
from augury.transforms.weights import transform_flat_weights


@dataclass(frozen=True, eq=False)
class Snapshot:
    """After an epoch: the filters as they meet an input, the maps of the noise at the current widths, the widths."""

    epoch: int
    filters: Float[Tensor, "F D"]
    T: Float[Tensor, "S 2 3"]
    widths: dict[str, float]


class FilterTrace(Progress):
    """Keeps the filters before training, after epochs 1, 2, 4, 8, ..., and after the last."""

    def __init__(self, net: Shallow, transform: Affine2d, eps: Float[Tensor, "S K"]) -> None:
        if len(net.input_shape) != 3:
            raise InputError(
                f"filters are pictures only for networks on images; got inputs of shape {list(net.input_shape)}."
            )
        if eps.shape[1] != transform.noise_dim:
            raise InputError(
                f"the noise of a bank must be [S, {transform.noise_dim}], a column for each of "
                f"{', '.join(transform.names)}; got {list(eps.shape)}."
            )
        self.net, self.transform, self.eps = net, transform, eps
        self.kept: list[Snapshot] = []
        self.latest: Snapshot | None = None

    def start(self, method: str, epochs: int, steps: int, done: int, units: Mapping[str, str]) -> None:
        """Keep the filters as they are at the start."""
        self.kept = [self._now(done)]

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Keep the latest filters, and those at powers of two."""
        epoch = int(row["epoch"])
        self.latest = self._now(epoch)
        if epoch & (epoch - 1) == 0:
            self.kept.append(self.latest)

    @torch.no_grad()
    def _now(self, epoch: int) -> Snapshot:
        filters = self.net.filters.detach().clone().cpu()
        eps = self.eps.to(self.transform.eta)
        return Snapshot(epoch, filters, self.transform.matrices(eps[None])[0].cpu(), self.transform.describe())

    @property
    def snapshots(self) -> list[Snapshot]:
        """What was kept, the last epoch at the end."""
        last = [] if self.latest is None or self.latest is self.kept[-1] else [self.latest]
        return [*self.kept, *last]

    @torch.no_grad()
    def bank(self, units: Sequence[int]) -> Float[Tensor, "E n S C H W"]:
        """Return the filters of some units under every map, for each snapshot."""
        C, H, W = self.net.input_shape
        chosen = list(units)
        banks = [transform_flat_weights(s.filters[chosen], s.T, (C, H, W)) for s in self.snapshots]
        return torch.stack(banks).transpose(1, 2).unflatten(-1, (C, H, W))


@torch.no_grad()
def leading_units(net: Shallow, n: int) -> list[int]:
    """Return the units whose filters weigh most in the outputs."""
    weight = net.filters.norm(dim=1) * net.output.weight.norm(dim=0)
    return [int(k) for k in weight.topk(min(n, net.units)).indices]
