"""Finite groups of images: rotations C_n, mirrors, translations on a torus (paper D).

The audit shows exact orbits; training learns a chance of moving. The width p of a finite group is the chance of
leaving the identity; an element other than the identity is then drawn with equal chances. At p = 0 nothing happens,
at p = (n - 1) / n every element is as likely as any other: full invariance. Only the choice between staying and
leaving depends on p, so only that choice is relaxed (a binary concrete variable; suggested in paper B, section 5):

    w = a / (a + b),    a = (p e^L)^{1/h},   b = (1 - p)^{1/h},    L = log(u / (1 - u)),
    view = (1 - w) x + w g_j(x),             j uniform on 1 .. n - 1,

with u uniform. Rounding w gives a draw that leaves with chance p, whatever the temperature h. A fixed h < 1
has slope 0 at p = 0, where learning starts, and h = 1 always blends images; so h falls from 1 at p = 0 to
`temperature` at full invariance. At p = 0 the slope of w is e^L: u is kept within [0.01, 0.99] so that it
stays below 99 (the chance of leaving is then p to within 0.01).
"""

import math
from abc import abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.units import PER_CENT, WidthSpec
from augury.transforms.affine_matrices import image_coordinates
from augury.transforms.base import Transform, magnitude
from augury.transforms.warp import warp

RELAXATIONS = ("soft", "straight_through")
"""What a view is: the blend itself, or the nearer of the two images with the gradient of the blend."""

_WITHIN = 0.49


def leave_weight(
    p: Float[Tensor, ""], eps: Float[Tensor, "B S"], full: float, temperature: float
) -> Float[Tensor, "B S"]:
    """Return the relaxed choice between staying (0) and leaving the identity (1)."""
    u = 0.5 + _WITHIN * eps
    sharpness = 1 / (1 + (temperature - 1) * p / full)
    a = (p * u / (1 - u)) ** sharpness
    return a / (a + (1 - p) ** sharpness)


class FiniteGroup(Transform):
    """A group of `order` elements g_0 = identity, g_1, ..., acting on images (or signals)."""

    kind = "image"

    def __init__(
        self,
        name: str,
        order: int,
        exact: bool,
        relaxation: str = "soft",
        temperature: float = 0.2,
        sampling: str = "independent",
    ) -> None:
        if order < 2:
            raise InputError(f"a finite group must have at least 2 elements; got {order}. One element changes nothing.")
        if not 0 < temperature <= 1:
            raise InputError(f"temperature must be above 0 and at most 1; got {temperature}. Try 0.2.")
        full = (order - 1) / order
        super().__init__([WidthSpec(name, PER_CENT, full)], sampling, noise_dim=1 if order == 2 else 2)
        self.one_way = self.names
        self.order, self.exact, self.temperature = order, exact, temperature
        self.relaxation = choose("relaxation", relaxation, RELAXATIONS)

    @abstractmethod
    def element(self, x: Float[Tensor, "B C ..."], j: int) -> Float[Tensor, "B C ..."]:
        """Apply one element to every input."""

    @abstractmethod
    def inverse_of(self, j: int) -> int:
        """Return which element undoes element j."""

    def orbit(self, x: Float[Tensor, "B C ..."]) -> Float[Tensor, "B n C ..."]:
        """Return every element applied to every input."""
        return torch.stack([self.element(x, j) for j in range(self.order)], dim=1)

    def act(self, x: Float[Tensor, "B C ..."], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S C ..."]:
        """Blend every input with S random elements of its orbit, as far as the noise and eta say."""
        full = self.specs[0].upper
        p = magnitude(self.eta[0].to(eps)).clamp(max=full)
        w = leave_weight(p, eps[..., 0], full, self.temperature)
        if self.relaxation == "straight_through":
            w = (w > 0.5).to(w) + (w - w.detach())
        return torch.lerp(x[:, None], self._moved(x, eps), w.reshape(*w.shape, *[1] * (x.ndim - 1)))

    def _moved(self, x: Tensor, eps: Tensor) -> Tensor:
        if self.order == 2:
            return self.element(x, 1)[:, None]
        image = torch.arange(x.shape[0], device=x.device)[:, None]
        return self.orbit(x)[image, self.which(eps)]

    def which(self, eps: Float[Tensor, "B S K"]) -> Int[Tensor, "B S"]:
        """Return the elements that the noise selects if the view leaves the identity."""
        others = self.order - 1
        return 1 + ((eps[..., -1] + 1) / 2 * others).long().clamp(0, others - 1)

    @torch.no_grad()
    def project_(self) -> None:
        """Bring the chance back to [0, full] after an optimiser's step: below 0 it would rise again."""
        self.eta.clamp_(0.0, self.specs[0].upper)


class CyclicRotation(FiniteGroup):
    """C_n, the rotations by multiples of 360 / n degrees; R^2_4 of paper D is C_4.

    C_2 and C_4 move pixels exactly. Other n interpolate and lose the corners of the image.

    Parameters
    ----------
    n
        Number of rotations.
    relaxation, temperature, sampling
        As for `FiniteGroup`.
    """

    def __init__(
        self, n: int = 4, relaxation: str = "soft", temperature: float = 0.2, sampling: str = "independent"
    ) -> None:
        super().__init__(f"C{n}", n, n in (2, 4), relaxation, temperature, sampling)

    def inverse_of(self, j: int) -> int:
        """Return the rotation by the rest of the turn."""
        return -j % self.order

    def element(self, x: Float[Tensor, "B C H W"], j: int) -> Float[Tensor, "B C H W"]:
        """Rotate by j / n of a turn, in the sense of `torch.rot90`."""
        H, W = x.shape[-2:]
        quarters, rest = divmod(4 * j, self.order)
        if rest == 0 and (H == W or quarters % 2 == 0):
            return torch.rot90(x, quarters, (-2, -1))
        if self.order == 4:
            raise InputError(
                f"C4 turns images by 90 degrees and needs square ones; got {H} x {W}. Crop them, or take C2."
            )
        turn = 2 * math.pi * j / self.order
        c, s = math.cos(turn), math.sin(turn)
        T = image_coordinates(torch.tensor([[c, -s, 0.0], [s, c, 0.0]]).to(x), H, W)
        return warp(x, T.expand(x.shape[0], 1, 2, 3))[:, 0]


class Flip(FiniteGroup):
    """A mirror: along "x" it exchanges left and right, along "y" top and bottom.

    Parameters
    ----------
    axis
        "x" or "y".
    relaxation, temperature, sampling
        As for `FiniteGroup`.
    """

    def __init__(
        self, axis: str = "x", relaxation: str = "soft", temperature: float = 0.2, sampling: str = "independent"
    ) -> None:
        choose("axis", axis, ("x", "y"))
        super().__init__(f"flip_{axis}", 2, True, relaxation, temperature, sampling)
        self.dim = -1 if axis == "x" else -2

    def inverse_of(self, j: int) -> int:
        """Return j: a mirror undoes itself."""
        return j

    def element(self, x: Float[Tensor, "B C H W"], j: int) -> Float[Tensor, "B C H W"]:
        """Leave the images (0) or mirror them (1)."""
        return x.flip(self.dim) if j else x


class Translations(FiniteGroup):
    """The n-fold translations of the plane, along both axes or one; T^2_3 of paper D is n = 3.

    The paper's text does not define the group. Its tied network has an error of exactly 0, so the shifts
    must close into a group: they run on a torus, in steps of a third of each side. Where n does not divide a
    side (28 pixels, n = 3), the torus is the centred window of the largest side that it divides, and the
    border of less than n pixels stays in place: still a permutation of the pixels, hence exact.

    Parameters
    ----------
    n
        Positions along each axis.
    axes
        "xy" (n * n elements), "x" or "y" (n elements).
    relaxation, temperature, sampling
        As for `FiniteGroup`.
    """

    def __init__(
        self,
        n: int = 3,
        axes: str = "xy",
        relaxation: str = "soft",
        temperature: float = 0.2,
        sampling: str = "independent",
    ) -> None:
        choose("axes", axes, ("xy", "x", "y"))
        name = f"T{n}" if axes == "xy" else f"T{n}_{axes}"
        super().__init__(name, n ** len(axes), True, relaxation, temperature, sampling)
        self.n, self.axes = n, axes

    def _steps(self, j: int) -> tuple[int, int]:
        on_y, on_x = divmod(j, self.n) if self.axes == "xy" else (j, 0) if self.axes == "y" else (0, j)
        return on_y, on_x

    def inverse_of(self, j: int) -> int:
        """Return the shift that completes a round of the torus."""
        on_y, on_x = (-step % self.n for step in self._steps(j))
        return on_y * self.n + on_x if self.axes == "xy" else on_y + on_x

    def element(self, x: Float[Tensor, "B C H W"], j: int) -> Float[Tensor, "B C H W"]:
        """Shift by j steps; along both axes, j = n * (steps down) + (steps right)."""
        for dim, steps in zip((-2, -1), self._steps(j), strict=True):
            x = x.index_select(dim, self._source(x.shape[dim], steps).to(x.device)) if steps else x
        return x

    def _source(self, size: int, steps: int) -> Tensor:
        step = size // self.n
        if step == 0:
            raise InputError(f"{self.names[0]} needs at least {self.n} pixels along each axis; got {size}.")
        period, source = step * self.n, torch.arange(size)
        first = (size - period) // 2
        source[first : first + period] = first + (torch.arange(period) - steps * step) % period
        return source
