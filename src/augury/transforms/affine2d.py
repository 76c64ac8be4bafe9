"""Affine transformations of images and of plain coordinates, with learnable widths (papers A and B)."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.units import DEGREES, FACTOR, PLAIN, Unit, WidthSpec, pixels
from augury.transforms.affine_matrices import GENERATORS, G, affine_matrices, image_coordinates
from augury.transforms.base import Transform
from augury.transforms.warp import warp

MATRICES = dict(zip(GENERATORS, G, strict=True)) | {"scale_joint": G[3] + G[4]}
"""The papers' six generators, and one that scales both axes by one factor (see `correlated`)."""

SUBSETS = {
    "affine": GENERATORS,
    "similarity": ("translate_x", "translate_y", "rotation", "scale_joint"),
    "translation": ("translate_x", "translate_y"),
    "scale": ("scale_x", "scale_y"),
}
"""Names for subsets of generators: those that the papers use, and the maps that keep shapes."""

UPPER = {"rotation": math.pi}
"""Beyond half a turn a rotation repeats itself; on plain coordinates the other generators have no such end."""

UPPER_ON_IMAGES = UPPER | {
    "translate_x": 1.0,
    "translate_y": 1.0,
    "scale_x": 2.0,
    "scale_y": 2.0,
    "scale_joint": 2.0,
}
"""An image that is shifted by more than half its side, or shrunk or blown up more than sevenfold, shows nothing: all
views are then alike, the evidence is flat, and a width would drift for ever."""


def generator_names(generators: str | Sequence[str]) -> tuple[str, ...]:
    """Return the generators that a name of a subset, one generator's name or a list of names stands for."""
    given = [generators] if isinstance(generators, str) else list(generators)
    known = {name: (name,) for name in MATRICES} | SUBSETS
    wanted = {name for word in given for name in known[choose("generator", word, known)]}
    if not wanted:
        raise InputError("generators must name at least one generator; got none. Try 'affine' for all six.")
    return tuple(name for name in MATRICES if name in wanted)


def _unit(name: str, size: int) -> Unit:
    if name.startswith("translate"):
        return pixels(size)
    return DEGREES if name == "rotation" else FACTOR if name.startswith("scale") else PLAIN


class Affine2d(Transform):
    """Random affine maps of images: T = exp(sum_k eps_k eta_k G_k), eps uniform.

    Coordinates are those of a square as long as the image's shorter side, so that a rotation is rigid on
    images of any aspect; for square images they are the papers'.

    Parameters
    ----------
    image_size
        Height and width of the images in pixels.
    generators
        Which generators may act; the papers' six unless told.
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
        specs = [WidthSpec(n, _unit(n, min(H, W)), UPPER_ON_IMAGES.get(n, math.inf)) for n in names]
        super().__init__(specs, sampling)
        self.image_size = (H, W)
        self.generators = torch.stack([MATRICES[n] for n in names])

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
        return image_coordinates(affine_matrices(self.eta.to(eps), eps, self.generators), *self.image_size)

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
        Which generators may act.
    sampling
        How eps is drawn.
    """

    kind = "coordinates"

    def __init__(self, generators: str | Sequence[str] = "rotation", sampling: str = "independent") -> None:
        names = generator_names(generators)
        units = {n: PLAIN if n.startswith("translate") else _unit(n, 2) for n in names}
        super().__init__([WidthSpec(n, units[n], UPPER.get(n, math.inf)) for n in names], sampling)
        self.generators = torch.stack([MATRICES[n] for n in names])

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
