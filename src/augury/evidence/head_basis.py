"""Features made comparable, and the rotation in which a linear head on them is easy.

    Z = (features - their mean) / sqrt(mean squared norm):  centred, unit average norm, whatever the extractor's scale.

A head under an isotropic prior does not see rotations of Z, so it is solved in the basis of the principal directions,
where Z^T Z is diagonal: one eigendecomposition of the smaller of Z^T Z and Z Z^T serves the solver, the determinant of
the curvature for every prior precision, and the gradient back to Z.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError

RELATIVE = 1e-10
"""Directions whose squared length is below this share of the longest are not there."""


@dataclass(frozen=True, eq=False)
class Normalised:
    """Features of one descriptor, comparable with those of another."""

    Z: Float[Tensor, "N d"]
    """Centred, of unit average squared norm."""
    centre: Float[Tensor, " d"]
    """Their mean."""
    scale: Float[Tensor, ""]
    """Root of their mean squared distance from it."""


def normalised(features: Float[Tensor, "N d"]) -> Normalised:
    """Centre features and scale them to unit average norm."""
    centre = features.mean(0)
    away = features - centre
    scale = away.square().sum(1).mean().sqrt()
    if not bool(torch.isfinite(scale.detach())):
        raise InputError(
            "features must be finite; the extractor gave NaN or infinity. Was its training cut short?"
        )
    if float(scale.detach()) == 0:
        raise InputError(
            "features must differ between inputs; the extractor gives the same for all of them. "
            "Are all images alike, or did its pre-training collapse?"
        )
    return Normalised(away / scale, centre, scale)


@dataclass(frozen=True, eq=False)
class Basis:
    """Features in the basis of their principal directions."""

    Z: Float[Tensor, "N r"]
    """Rotated features; the columns are orthogonal."""
    a: Float[Tensor, " r"]
    """Squared lengths of the columns: the eigenvalues of Z^T Z that are not 0."""
    original: Float[Tensor, "N d"]
    """The features before the rotation."""
    V: Float[Tensor, "d r"] | None
    """The rotation, where d is the smaller side."""

    def lift(self, rows: Float[Tensor, "m r"]) -> Float[Tensor, "m d"]:
        """Return rows of the rotated space in the original one."""
        if self.V is not None:
            return rows.to(self.V) @ self.V.T
        # V = Z0^T U a^-1/2 with U = Z a^-1/2, so that V itself, which is large, need not be made.
        return ((rows / self.a) @ self.Z.T).to(self.original) @ self.original


@torch.no_grad()
def basis(Z: Float[Tensor, "N d"], dtype: torch.dtype = torch.float64) -> Basis:
    """Return features in the basis of their principal directions."""
    Z = Z.detach()
    N, d = Z.shape
    values, vectors = torch.linalg.eigh((Z.T @ Z if d < N else Z @ Z.T).double())
    keep = values > RELATIVE * max(N, d) * values[-1].clamp_min(0)
    a, vectors = values[keep], vectors[:, keep]
    if d < N:
        V = vectors.to(dtype)
        return Basis(Z.to(dtype) @ V, a.to(dtype), Z, V)
    return Basis((vectors * a.sqrt()).to(dtype), a.to(dtype), Z, None)
