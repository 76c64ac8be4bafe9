r"""A random policy like TrivialAugment: each view gets one operation, its strength uniform.

    view = g_j(x, eps),   j uniform on the operations (doing nothing is one of them),   eps uniform on [-1, 1]

The operations are the geometric and photometric ones of the usual search spaces, within the ranges of RandAugment:
turns to 30 degrees, shears to 0.3, shifts to a third of the image, colours to a factor 1.9.
"""

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from augury.transforms.affine2d import Affine2d
from augury.transforms.base import Transform
from augury.transforms.color import NEED_RGB, Color
from augury.transforms.compose import Compose

GEOMETRIC = ("translate_x", "translate_y", "rotation", "shear")
PHOTOMETRIC = ("brightness", "contrast", "saturation")


class OneOf(Compose):
    """One of several transformations, or none, for every view."""

    def __init__(self, parts: Sequence[Transform]) -> None:
        super().__init__(parts)
        self.noise_dim = 2

    def act(self, x: Float[Tensor, "B ..."], eps: Float[Tensor, "B S 2"]) -> Float[Tensor, "B S ..."]:
        """Give every view its one operation."""
        views = x[:, None].repeat(1, eps.shape[1], *[1] * (x.ndim - 1))
        n = len(self.parts) + 1
        which = ((eps[..., 0] + 1) / 2 * n).long().clamp(0, n - 1)
        for j, part in enumerate(self.parts):
            b, s = torch.nonzero(which == j, as_tuple=True)
            if len(b):
                views[b, s] = cast(Transform, part).act(x[b], eps[b, s, 1:, None])[:, 0]
        return views


def trivial(input_shape: Sequence[int]) -> OneOf:
    """Return the random policy for images of a shape."""
    C, H, W = input_shape
    parts: list[Transform] = [Affine2d((H, W), name) for name in GEOMETRIC]
    parts += [Color([name]) for name in PHOTOMETRIC if C == 3 or name not in NEED_RGB]
    policy = OneOf(parts)
    ranges = {"translate_x": W / 3, "translate_y": H / 3, "rotation": 30.0, "shear": 0.3}
    ranges |= dict.fromkeys(PHOTOMETRIC, 1.9)
    policy.set_widths({name: ranges[name] for name in policy.names})
    return policy
