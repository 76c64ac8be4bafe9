"""Batch normalisation for networks whose weights change with a descriptor.

    y = (x - mean) / sqrt(var + eps) * weight + bias

Running averages belong to one set of weights; here every descriptor has its own, and averages over several of them
fit none. So the statistics are always taken at the current weights: of the batch itself, or of reference inputs that
pass through the same network just before, differentiable in its weights either way.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.world import ALONE
from augury.models.batchnorm import BATCH_NORMS, BatchNorm
from augury.models.layers import swap_modules


class MomentNorm(nn.Module):
    """A BatchNorm without running averages that can record its moments and keep to them."""

    def __init__(self, norm: BatchNorm) -> None:
        super().__init__()
        self.kind, self.channels, self.eps = type(norm), norm.num_features, norm.eps
        self.weight, self.bias = norm.weight, norm.bias
        self.recording = False
        self.moments: tuple[Tensor, Tensor] | None = None
        self.world = ALONE

    def forward(self, x: Float[Tensor, "B C ..."]) -> Float[Tensor, "B C ..."]:
        """Normalise by the recorded moments, else by those of the batch."""
        if self.training and self.world.size > 1 and self.moments is None and not self.recording:
            return self._normalised(x, *self._moments_of_all(x))
        if self.moments is None and not self.recording:
            return F.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)
        if self.recording:
            var, mean = torch.var_mean(x, [0, *range(2, x.ndim)], correction=0)
            self.moments = mean, var
        assert self.moments is not None
        return self._normalised(x, *self.moments)

    def _moments_of_all(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance over the parts of a batch that all processes have."""
        x, dims, shape = x[:0] if self.world.idle else x, [0, *range(2, x.ndim)], (-1, *[1] * (x.ndim - 2))
        n = self.world.sums([x.numel() / x.shape[1]])[0]
        mean = self.world.total(x.sum(dims)) / n
        return mean, self.world.total((x - mean.view(shape)).square().sum(dims)) / n

    def _normalised(self, x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        scale = (var + self.eps).rsqrt()
        scale = scale if self.weight is None else scale * self.weight
        shift = -mean * scale if self.bias is None else self.bias - mean * scale
        shape = (-1, *[1] * (x.ndim - 2))
        return x * scale.view(shape) + shift.view(shape)

    def plain(self) -> nn.Module:
        """Return an ordinary BatchNorm with the recorded moments, or with the batch's if there are none."""
        fixed = self.moments is not None
        norm = self.kind(self.channels, self.eps, affine=self.weight is not None, track_running_stats=fixed)
        if self.weight is not None:
            norm.weight, norm.bias = self.weight, self.bias
        if self.moments is not None:
            norm.running_mean, norm.running_var = (m.detach().clone() for m in self.moments)
        return norm.eval()


def swap_in(encoder: nn.Module) -> list[MomentNorm]:
    """Replace every BatchNorm of a module, in place."""
    swap_modules(encoder, BATCH_NORMS, MomentNorm)
    return [module for module in encoder.modules() if isinstance(module, MomentNorm)]


@contextmanager
def recording(norms: list[MomentNorm]) -> Iterator[None]:
    """Record the moments of what passes through; they hold until `forget`."""
    for norm in norms:
        norm.recording = True
    try:
        yield
    finally:
        for norm in norms:
            norm.recording = False


def forget(norms: list[MomentNorm]) -> None:
    """Return to the statistics of each batch."""
    for norm in norms:
        norm.moments = None
