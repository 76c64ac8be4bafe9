"""The finite groups that act on images: rotations C_n, mirrors, translations on a torus (paper D)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.transforms.affine_matrices import image_coordinates
from augury.transforms.finite_group import FiniteGroup
from augury.transforms.warp import warp


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
        self,
        axis: str = "x",
        relaxation: str = "soft",
        temperature: float = 0.2,
        sampling: str = "independent",
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

    The paper's text does not spell the group out. Its tied network has an error of exactly 0, so the shifts
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
