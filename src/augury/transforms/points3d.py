r"""Rotations and isotropic scaling of point clouds [B, P, 3] about the origin, with learnable widths.

R = exp([v]) with v_k = eps_k eta_k the rotation vector and [v] its cross-product matrix. By Rodrigues, with
theta = |v|,

    R = I + s(-theta^2) [v] + 1/2 s(-theta^2 / 4)^2 [v]^2,    s(-theta^2) = sin(theta) / theta,

since (1 - cos theta) / theta^2 = 1/2 (sin(theta / 2) / (theta / 2))^2: entire functions of theta^2, smooth at
0.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.transforms.affine_matrices import cosh_and_sinhc
from augury.transforms.base import Transform
from augury.transforms.vocabulary import POINTS

AXES = POINTS["rotation3d"].parts
POINT_GENERATORS = (*AXES, "scale")  # names of the generators: rotation about each axis, and isotropic scale


def rotation_matrices(v: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 3 3"]:
    """Return the rotation matrices of rotation vectors."""
    zero = torch.zeros_like(v[..., 0])
    x, y, z = v.unbind(-1)
    cross = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=-1).unflatten(-1, (3, 3))
    q = -(v**2).sum(-1)[..., None, None]
    eye = torch.eye(3, dtype=v.dtype, device=v.device)
    (_, s), (_, s_half) = cosh_and_sinhc(q), cosh_and_sinhc(q / 4)
    return eye + s * cross + s_half**2 / 2 * (cross @ cross)


class Rotation3d(Transform):
    """Random rotations and scalings of point clouds about the origin (centre your clouds).

    | width | eta | shown as | upper bound |
    |---|---|---|---|
    | rotation_x, rotation_y, rotation_z | component of the rotation vector | degrees | pi |
    | scale | log of the factor | factor | none |

    Parameters
    ----------
    generators
        Which of the four may act. Default: the three rotations.
    sampling
        How eps is drawn.
    """

    kind = "points"

    def __init__(self, generators: Sequence[str] = AXES, sampling: str = "independent") -> None:
        wanted = [choose("generator", name, POINT_GENERATORS) for name in generators]
        if not wanted:
            raise InputError(f"generators must name at least one of {', '.join(POINT_GENERATORS)}; got none.")
        names = [name for name in POINT_GENERATORS if name in wanted]
        super().__init__([POINTS[name].spec(name) for name in names], sampling)
        self.axes = [AXES.index(name) for name in names if name in AXES]

    def act(self, x: Float[Tensor, "B P 3"], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S P 3"]:
        """Rotate and scale every cloud S times."""
        steps = eps * self.eta.to(eps)
        views = x[:, None].expand(-1, eps.shape[1], -1, -1)
        if self.axes:
            v = steps.new_zeros(*steps.shape[:-1], 3)
            v[..., self.axes] = steps[..., : len(self.axes)]
            views = views @ rotation_matrices(v).mT
        if self.names[-1] == "scale":
            views = views * steps[..., -1, None, None].exp()
        return views
