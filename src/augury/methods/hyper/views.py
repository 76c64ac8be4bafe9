"""Random views of images under some of the invariance groups, a batch at a time.

    view(p) = color(x(T p)),    T = affine * turn * flip * crop: one warp, one colour map, whatever the operations

Built from the library's own transformations (`affine_matrices`, `warp`, `Color`). Nothing is differentiated here, so
colours are clipped to [0, 1] as in a photograph. A group takes part with a strength in [0, 1] that scales how far its
operations go, so that a descriptor can be given as it is; binary in paper C.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError
from augury.methods.hyper.groups import Group, Step
from augury.transforms.affine2d import MATRICES
from augury.transforms.affine_matrices import affine_matrices, image_coordinates
from augury.transforms.color import Color
from augury.transforms.warp import warp

Size = tuple[int, int, int]
"""Images in the batch, their height, their width."""

RATIO = math.log(4 / 3)
"""Random crops stretch by up to 4 : 3 either way, as SimCLR's do."""


class Views:
    """Draws views."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = tuple(groups)

    @torch.no_grad()
    def __call__(
        self, x: Float[Tensor, "B C H W"], strengths: Sequence[float], rng: torch.Generator
    ) -> Float[Tensor, "B C H W"]:
        """Return one view of every image."""
        if len(strengths) != len(self.groups):
            raise InputError(
                f"there must be one strength for each of {len(self.groups)} groups; got {len(strengths)}."
            )
        steps = [
            (step, strength)
            for group, strength in zip(self.groups, strengths, strict=True)
            if strength > 0
            for step in group.steps
        ]
        x = self._moved(x, [s for s in steps if s[0].operation.family in MAPS], rng)
        x = self._colored(x, [s for s in steps if s[0].operation.family == "color"], rng)
        if any(step.name == "channels" for step, _ in steps):
            x = _rolled(x, max(strength for step, strength in steps if step.name == "channels"), rng)
        return x

    def _moved(self, x: Tensor, steps: list[tuple[Step, float]], rng: torch.Generator) -> Tensor:
        if not steps:
            return x
        B, _, H, W = x.shape
        T = torch.eye(3).expand(B, 3, 3)
        for step, strength in steps:
            T = T @ MAPS[step.operation.family](step, strength, (B, H, W), rng)
        return warp(x, T[:, None, :2].to(x))[:, 0]

    def _colored(self, x: Tensor, steps: list[tuple[Step, float]], rng: torch.Generator) -> Tensor:
        if not steps:
            return x
        x = x.clone()
        for step, strength in steps:
            grey = step.name == "grey"  # all of it or nothing, the less often the weaker
            touched = _chance(len(x), step.operation.chance * (strength if grey else 1.0), rng).nonzero()[
                :, 0
            ]
            widths = step.operation.widths(step.amount)
            eps = _uniform((len(x), 1, len(widths)), rng)[touched].to(x) * strength
            color = Color(tuple(widths)).to(x)
            color.eta.copy_(torch.tensor([widths[name] for name in color.names]))
            x[touched] = color.act(x[touched], torch.ones_like(eps) if grey else eps)[:, 0]
        return x.clamp_(0, 1)


def _uniform(shape: tuple[int, ...], rng: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=rng, device=rng.device) * 2 - 1


def _chance(B: int, chance: float, rng: torch.Generator) -> Tensor:
    return (torch.rand(B, generator=rng, device=rng.device) < chance).float()


def _in_image(T: Tensor, H: int, W: int) -> Tensor:
    """Return maps of a square as 3 x 3 matrices in the coordinates of an image."""
    last = torch.tensor([0.0, 0.0, 1.0]).expand(len(T), 1, 3)
    return torch.cat([image_coordinates(T, H, W), last], dim=1)


def _affine(step: Step, strength: float, size: Size, rng: torch.Generator) -> Tensor:
    widths = step.operation.widths(step.amount)
    generators = torch.stack([MATRICES[name] for name in widths])
    eta = torch.tensor(list(widths.values())) * strength
    B, H, W = size
    return _in_image(affine_matrices(eta, _uniform((B, len(widths)), rng), generators), H, W)


def _flip(step: Step, strength: float, size: Size, rng: torch.Generator) -> Tensor:
    sign = 1 - 2 * _chance(size[0], step.operation.chance * strength, rng)
    one = torch.ones_like(sign)
    return torch.diag_embed(torch.stack([sign, one, one] if step.name == "flip" else [one, sign, one], dim=1))


def _turn(step: Step, strength: float, size: Size, rng: torch.Generator) -> Tensor:
    B, H, W = size
    quarters = torch.randint(4, (B,), generator=rng) * _chance(B, strength, rng)
    c, s = (math.pi / 2 * quarters).cos().round(), (math.pi / 2 * quarters).sin().round()
    zero = torch.zeros_like(c)
    return _in_image(torch.stack([c, -s, zero, s, c, zero], dim=1).view(B, 2, 3), H, W)


def _crop(step: Step, strength: float, size: Size, rng: torch.Generator) -> Tensor:
    """Return maps onto random windows: a share of the area uniform from the smallest to 1, of random proportions."""
    B, H, W = size
    smallest = 1 - strength * (1 - step.amount)
    area = smallest + (1 - smallest) * torch.rand(B, generator=rng)
    stretch = (_uniform((B,), rng) * (RATIO * strength / 2)).exp()
    sides = torch.stack([area.sqrt() * stretch, area.sqrt() / stretch], dim=1).clamp(max=1.0)
    # The outermost points lie on the outermost pixels' centres at most: beyond there is black.
    reach = (1 - sides) * (1 - 1 / torch.tensor([float(W), float(H)]))
    T = torch.diag_embed(torch.cat([sides, torch.ones(B, 1)], dim=1))
    T[:, :2, 2] = _uniform((B, 2), rng) * reach
    return T


def _rolled(x: Tensor, strength: float, rng: torch.Generator) -> Tensor:
    """Return the images with their channels moved round by 0, 1 or 2 places."""
    B, C = x.shape[:2]
    by = torch.randint(C, (B,), generator=rng) * _chance(B, strength, rng).long()
    source = (torch.arange(C) + by[:, None]) % C
    return x[torch.arange(B)[:, None], source]


MAPS = {"affine": _affine, "turn": _turn, "flip": _flip, "crop": _crop}
"""The operations that move pixels, in matrices; composed in the order of the groups."""
