"""Affine transformations of images and of plain coordinates, with learnable widths (papers A and B)."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.transforms.affine_matrices import GENERATORS, G, affine_matrices, image_coordinates
from augury.transforms.base import Transform
from augury.transforms.vocabulary import AFFINE, COORDINATES
from augury.transforms.warp import warp

MATRICES = dict(zip(GENERATORS, G, strict=True)) | {"scale_joint": G[3] + G[4]}
"""The papers' six generators, and one that scales both axes by one factor."""


def generator_names(generators: str | Sequence[str]) -> tuple[str, ...]:
    """Return the generators that words denote, in the order of `MATRICES`."""
    given = [generators] if isinstance(generators, str) else list(generators)
    wanted = {name for word in given for name in AFFINE[choose("generator", word, AFFINE)].parts or (word,)}
    if not wanted:
        raise InputError("generators must name at least one generator; got none. Try 'affine' for all six.")
    return tuple(name for name in MATRICES if name in wanted)


def _height_and_width(given: Any) -> tuple[int, int]:
    """Return the size of images from one number or two."""
    sides = tuple(given) if isinstance(given, tuple | list) else (given, given)
    if len(sides) != 2 or not all(isinstance(side, Integral) and int(side) > 0 for side in sides):
        got = f"a tensor of shape {list(given.shape)}" if isinstance(given, Tensor) else repr(given)
        raise InputError(
            f"image_size must be the height and width of the images in pixels, such as (28, 28), or 28 for square "
            f"ones; got {got}. For images x: x.shape[-2:]."
        )
    return int(sides[0]), int(sides[1])


class Affine2d(Transform):
    """Random affine maps of images: T = exp(sum_k eps_k eta_k G_k), eps uniform.

    Coordinates are those of a square as long as the image's shorter side, so that a rotation is rigid on
    images of any aspect; for square images they are the papers'.

    Parameters
    ----------
    image_size
        Height and width of the images in pixels; one number for square images.
    generators
        Which generators may act. Default: the papers' six.
    sampling
        How eps is drawn: "independent", "stratified", "centred" or "grid".
    """

    kind = "image"

    def __init__(
        self,
        image_size: int | tuple[int, int],
        generators: str | Sequence[str] = "affine",
        sampling: str = "independent",
    ) -> None:
        names = generator_names(generators)
        size = _height_and_width(image_size)
        super().__init__([AFFINE[n].spec(n, min(size)) for n in names], sampling)
        self.image_size = size
        self.generators = torch.stack([MATRICES[n] for n in names])

    def matrices(self, eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S 2 3"]:
        """Return the affine maps of the noise.

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
        """Warp every image S times."""
        if tuple(x.shape[-2:]) != self.image_size:
            raise InputError(
                f"Affine2d was made for images of {self.image_size[0]} x {self.image_size[1]} pixels; "
                f"got {x.shape[-2]} x {x.shape[-1]}. Resize the images (size=, --size), or make another with "
                f"image_size={tuple(x.shape[-2:])}."
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
        super().__init__([COORDINATES[n].spec(n) for n in names], sampling)
        self.generators = torch.stack([MATRICES[n] for n in names])

    def act(self, x: Float[Tensor, "B 2"], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S 2"]:
        """Map every point S times."""
        T = affine_matrices(self.eta.to(eps), eps, self.generators)
        return (T[..., :2] @ x[:, None, :, None])[..., 0] + T[..., 2]
