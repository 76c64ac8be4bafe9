"""Views under fixed noise, as modules of constants: the parts of a program of the orbit average.

In evaluation mode every input gets the same S views, so matrices, chances and factors are known before any input is:
they become buffers, and what is left for the program is to sample, to mix and to permute. Each module maps
[B, S, ...] to [B, S, ...], the s-th view by the s-th constant.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.transforms.affine2d import Affine2d, AffineCoordinates
from augury.transforms.affine_matrices import affine_matrices
from augury.transforms.base import Transform
from augury.transforms.compose import Compose, Correlated, Identity
from augury.transforms.finite_groups import FiniteGroup, leave_weight
from augury.transforms.points3d import Rotation3d
from augury.transforms.signal1d import Signal1d

Views = Float[Tensor, "B S ..."]


def constant(tensor: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """Return a copy with its own memory, as a file of constants needs."""
    return tensor.detach().clone(memory_format=torch.contiguous_format)


class FrozenWarp(nn.Module):
    """Bilinear sampling of images [B, S, C, H, W] through S fixed maps."""

    grid: Tensor

    def __init__(self, T: Float[Tensor, "S 2 3"], size: tuple[int, int]) -> None:
        super().__init__()
        grid = F.affine_grid(T.detach(), [len(T), 1, *size], align_corners=False)
        self.register_buffer("grid", constant(grid))

    def forward(self, views: Float[Tensor, "B S C H W"]) -> Float[Tensor, "B S C H W"]:
        """Sample every view at its grid."""
        B, S = views.shape[:2]
        grid = self.grid.expand(B, *self.grid.shape).flatten(0, 1)
        sampled = F.grid_sample(views.flatten(0, 1), grid, align_corners=False)
        return sampled.unflatten(0, (B, S))


class FrozenSignal(nn.Module):
    """Shift, stretch and gain of signals [B, S, C, T]."""

    gain: Tensor

    def __init__(self, transform: Signal1d, eps: Float[Tensor, "S K"]) -> None:
        super().__init__()
        K, eta = len(transform.time_generators), transform.eta.detach()
        self.warp: nn.Module = nn.Identity()
        if K:
            T = affine_matrices(eta[:K], eps[:, :K], transform.time_generators)
            self.warp = FrozenWarp(T, (1, transform.length))
        has_gain = transform.names[-1] == "amplitude"
        gain = (eps[:, -1] * eta[-1]).exp() if has_gain else torch.ones(len(eps))
        self.register_buffer("gain", constant(gain[:, None, None]))

    def forward(self, views: Float[Tensor, "B S C T"]) -> Float[Tensor, "B S C T"]:
        """Treat a signal as an image one pixel high."""
        return self.warp(views.unsqueeze(-2)).squeeze(-2) * self.gain


class FrozenLinear(nn.Module):
    """S fixed affine maps of points [B, S, ..., D]."""

    A: Tensor
    t: Tensor

    def __init__(self, A: Float[Tensor, "S D D"], t: Float[Tensor, "S D"]) -> None:
        super().__init__()
        self.register_buffer("A", constant(A))
        self.register_buffer("t", constant(t[:, None]))

    def forward(self, views: Views) -> Views:
        """Map every point."""
        flat = views.flatten(2, -2) if views.ndim > 3 else views.unsqueeze(2)
        return (flat @ self.A + self.t).reshape(views.shape)


class FrozenFinite(nn.Module):
    """Blends with S fixed elements of a finite group."""

    w: Tensor

    def __init__(self, group: FiniteGroup, eps: Float[Tensor, "S K"]) -> None:
        super().__init__()
        full = group.specs[0].upper
        p = group.eta.detach()[0].abs().clamp(max=full)
        w = leave_weight(p, eps[None, :, 0], full, group.temperature)[0]
        w = (w > 0.5).to(w) if group.relaxation == "straight_through" else w
        self.group = group
        self.which = [1] * len(eps) if group.order == 2 else group.which(eps[None])[0].tolist()
        self.register_buffer("w", constant(w))

    def forward(self, views: Views) -> Views:
        """Blend every view with its element."""
        moved = [self.group.element(views[:, s], j) for s, j in enumerate(self.which)]
        w = self.w.reshape(-1, *[1] * (views.ndim - 2))
        return torch.lerp(views, torch.stack(moved, 1), w)


class Acting(nn.Module):
    """Any other transformation, by its `act`: colours, and the user's own."""

    eps: Tensor

    def __init__(self, transform: Transform, eps: Float[Tensor, "S K"]) -> None:
        super().__init__()
        self.transform = transform.requires_grad_(False)
        self.register_buffer("eps", constant(eps))

    def forward(self, views: Views) -> Views:
        """Give every view to `act` as an input of its own."""
        B, S = views.shape[:2]
        eps = self.eps.expand(B, -1, -1).reshape(B * S, 1, -1)
        return self.transform.act(views.flatten(0, 1), eps).squeeze(1).unflatten(0, (B, S))


def _compose(transform: Compose, eps: Tensor) -> nn.Module:
    parts = transform._parts()
    noises = eps.split([part.noise_dim for part in parts], dim=-1)
    return nn.Sequential(*[frozen(part, noise) for part, noise in zip(parts, noises, strict=True)])


def _correlated(transform: Correlated, eps: Tensor) -> nn.Module:
    return frozen(transform.transform, eps @ transform.factor().detach().mT)


def _points(transform: Rotation3d, eps: Tensor) -> nn.Module:
    # Rotation and scale are linear: what they do to the three unit vectors is their matrix.
    A = transform.act(torch.eye(3).expand(1, 3, 3), eps[None])[0]
    return FrozenLinear(A, torch.zeros(len(eps), 3))


def _coordinates(transform: AffineCoordinates, eps: Tensor) -> nn.Module:
    T = affine_matrices(transform.eta.detach(), eps, transform.generators)
    return FrozenLinear(T[..., :2].mT, T[..., 2])


FROZEN: dict[type[Transform], Callable[..., nn.Module]] = {
    Affine2d: lambda transform, eps: FrozenWarp(transform.matrices(eps[None])[0], transform.image_size),
    AffineCoordinates: _coordinates,
    Compose: _compose,
    Correlated: _correlated,
    Identity: lambda transform, eps: nn.Identity(),
    Rotation3d: _points,
    Signal1d: FrozenSignal,
}
"""How each transformation is frozen; finite groups by their base class, all others as they are."""


def frozen(transform: Transform, eps: Float[Tensor, "S K"]) -> nn.Module:
    """Return the S views of fixed noise, as a module."""
    if isinstance(transform, FiniteGroup):
        return FrozenFinite(transform, eps)
    return FROZEN.get(type(transform), Acting)(transform, eps)
