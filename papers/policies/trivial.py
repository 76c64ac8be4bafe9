r"""A random policy like TrivialAugment: each view gets one operation, its strength uniform.

    view = g_j(x, eps),   j uniform on the operations (doing nothing is one of them),   eps uniform on [-1, 1]

The operations are the geometric and photometric ones of the usual search spaces, within the ranges of RandAugment:
turns to 30 degrees, shears to 0.3, shifts to a third of the image, colours to a factor 1.9. `wide` is TrivialAugment's
own recipe: a mirror and a padded crop first, then one operation in its wide ranges (turns to 135 degrees, shears to
0.99). Left out of its operations: shifts, which are the crop's, and posterise, solarise, equalise and sharpness, which
we have no transformations for.
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
from augury.transforms.vocabulary import build

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
    if len(input_shape) == 2:
        signals = OneOf([build([name], "signal", input_shape) for name in ("time_shift", "time_stretch", "amplitude")])
        signals.set_widths({"time_shift": input_shape[1] / 10, "time_stretch": 1.2, "amplitude": 1.5})
        return signals
    return _one_of(input_shape, GEOMETRIC, rotation=30.0, shear=0.3)


def wide(input_shape: Sequence[int]) -> Compose:
    """Return TrivialAugment's own policy for images of a shape."""
    H, W = input_shape[1:]
    first = build(["flip_x", "translation"], "image", input_shape)
    first.set_widths({"flip_x": 50.0, "translate_x": W / 8, "translate_y": H / 8})
    return Compose([first, _one_of(input_shape, ("rotation", "shear"), rotation=135.0, shear=0.99)])


def _one_of(input_shape: Sequence[int], names: Sequence[str], rotation: float, shear: float) -> OneOf:
    C, H, W = input_shape
    parts: list[Transform] = [Affine2d((H, W), name) for name in names]
    parts += [Color([name]) for name in PHOTOMETRIC if C == 3 or name not in NEED_RGB]
    policy = OneOf(parts)
    ranges = {"translate_x": W / 3, "translate_y": H / 3, "rotation": rotation, "shear": shear}
    ranges |= dict.fromkeys(PHOTOMETRIC, 1.9)
    policy.set_widths({name: ranges[name] for name in policy.names})
    return policy
