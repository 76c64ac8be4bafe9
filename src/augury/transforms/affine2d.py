"""Affine transformations of images and of plain coordinates, with learnable widths (papers A and B)."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.units import DEGREES, FACTOR, PLAIN, Unit, WidthSpec, pixels
from augury.transforms.affine_matrices import GENERATORS, G, affine_matrices
from augury.transforms.base import Transform
from augury.transforms.warp import warp

SUBSETS = {
    "affine": GENERATORS,
    "rotation": ("rotation",),
    "translation": ("translate_x", "translate_y"),
    "scale": ("scale_x", "scale_y"),
}
"""Names for the subsets of generators that the papers use."""

UPPER = {"rotation": math.pi}
"""Beyond half a turn a rotation repeats itself; the other generators have no such end."""


def generator_names(generators: str | Sequence[str]) -> tuple[str, ...]:
    """Return the generators that a name of a subset, one generator's name or a list of names stands for.

    Parameters
    ----------
    generators
        "affine", "rotation", "translation", "scale", a generator's name, or several of these.

    Returns
    -------
    tuple
        Names of generators, in the papers' order, each once.
    """
    given = [generators] if isinstance(generators, str) else list(generators)
    known = dict(SUBSETS) | {name: (name,) for name in GENERATORS}
    wanted = {name for word in given for name in known[choose("generator", word, known)]}
    if not wanted:
        raise InputError("generators must name at least one generator; got none. Try 'affine' for all six.")
    return tuple(name for name in GENERATORS if name in wanted)


def _unit(name: str, size: int) -> Unit:
    if name.startswith("translate"):
        return pixels(size)
    return DEGREES if name == "rotation" else FACTOR if name.startswith("scale") else PLAIN


class Affine2d(Transform):
    """Random affine maps of images: T = exp(sum_k eps_k eta_k G_k), eps uniform.

    Coordinates are those of a square as long as the image's shorter side, so that a rotation is rigid on images
    of any aspect; for square images they are the papers'.

    Parameters
    ----------
    image_size
        Height and width of the images in pixels.
    generators
        Which of the six generators may act; all of them unless told.
    sampling
        How eps is drawn: "independent", "stratified" or "grid".
    """

    kind = "image"

    def __init__(
        self,
        image_size: tuple[int, int],
        generators: str | Sequence[str] = "affine",
        sampling: str = "independent",
    ) -> None:
        names = generator_names(generators)
        H, W = image_size
        super().__init__([WidthSpec(n, _unit(n, min(H, W)), UPPER.get(n, math.inf)) for n in names], sampling)
        self.image_size = (H, W)
        self.generators = G[[GENERATORS.index(n) for n in names]]
        half = torch.tensor([W, H, min(H, W)], dtype=torch.float64)
        self.aspect = half[None, :] / half[:2, None]  # D^-1 T D, from square to image coordinates

    def matrices(self, eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S 2 3"]:
        """Return the maps that the noise stands for.

        Parameters
        ----------
        eps
            Noise.

        Returns
        -------
        Tensor
            Upper two rows of T in the image's own coordinates.
        """
        T = affine_matrices(self.eta.to(eps), eps, self.generators)
        H, W = self.image_size
        return T if H == W else T * self.aspect.to(T)

    def act(self, x: Float[Tensor, "B C H W"], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S C H W"]:
        """Warp every image S times.

        Parameters
        ----------
        x
            Images of the size that was announced.
        eps
            Noise.

        Returns
        -------
        Tensor
            The views.
        """
        if tuple(x.shape[-2:]) != self.image_size:
            raise InputError(
                f"Affine2d was made for images of {self.image_size[0]} x {self.image_size[1]} pixels; "
                f"got {x.shape[-2]} x {x.shape[-1]}. Make another with image_size={tuple(x.shape[-2:])}."
            )
        return warp(x, self.matrices(eps))


class AffineCoordinates(Transform):
    """The same maps on plain 2-d coordinates: the toy problems of papers A and B.

    Parameters
    ----------
    generators
        Which of the six generators may act.
    sampling
        How eps is drawn.
    """

    kind = "coordinates"

    def __init__(self, generators: str | Sequence[str] = "rotation", sampling: str = "independent") -> None:
        names = generator_names(generators)
        units = {n: PLAIN if n.startswith("translate") else _unit(n, 2) for n in names}
        super().__init__([WidthSpec(n, units[n], UPPER.get(n, math.inf)) for n in names], sampling)
        self.generators = G[[GENERATORS.index(n) for n in names]]

    def act(self, x: Float[Tensor, "B 2"], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S 2"]:
        """Map every point S times.

        Parameters
        ----------
        x
            Points.
        eps
            Noise.

        Returns
        -------
        Tensor
            The views T x.
        """
        T = affine_matrices(self.eta.to(eps), eps, self.generators)
        return (T[..., :2] @ x[:, None, :, None])[..., 0] + T[..., 2]
