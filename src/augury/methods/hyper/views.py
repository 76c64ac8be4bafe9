"""Random views of images under some of the invariance groups, a batch at a time.

    view(p) = color(x(T p)),    T = crop * finite * affine: one warp, one colour map, whatever the operations

Built from the library's own transformations. Nothing is differentiated here, so colours are clipped to [0, 1] as in a
photograph, and finite groups are drawn, not relaxed. A group takes part with a strength in [0, 1] that scales how far
its operations go, so that a descriptor can be given as it is; binary in paper C.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError
from augury.core.rng import rows
from augury.methods.hyper.groups import RANDOM, Group, Step, operation, parse_groups
from augury.transforms.affine2d import Affine2d
from augury.transforms.affine_matrices import affine_matrices, image_coordinates
from augury.transforms.color import Color
from augury.transforms.finite_groups import CyclicRotation, FiniteGroup, Flip
from augury.transforms.vocabulary import AFFINE, COLOR, build
from augury.transforms.warp import warp

RATIO = math.log(4 / 3)  # random crops stretch by up to 4 : 3 either way, as SimCLR's do

COLORED = {*COLOR, "jitter", "greyscale"}  # the operations that change colours

JITTERED = ("brightness", "contrast", "saturation", "hue")


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
            raise InputError(f"there must be one strength for each of {len(self.groups)} groups; got {len(strengths)}.")
        pairs = zip(self.groups, strengths, strict=True)
        active = [(_sized(group, x.shape[1:]), strength) for group, strength in pairs if strength > 0]
        x = _moved(x, active, rng)
        colored = [(step, s) for group, s in active for step in group.steps if step.name in COLORED]
        x = _colored(x, colored, rng)
        for group, strength in active:
            for step in group.steps:
                if step.name == "channels":
                    x = _rolled(x, strength * step.chance / 100, rng)
        return x


def _sized(group: Group, shape: Sequence[int]) -> Group:
    """Fill in the default amounts that depend on the size of the images."""
    waiting = any(step.amount is None and operation(step.name).unit is not None for step in group.steps)
    return parse_groups({group.name: str(group)}, shape)[0] if waiting else group


def _rand(shape: tuple[int, ...], rng: torch.Generator) -> Tensor:
    return rows(lambda B: torch.rand(B, *shape[1:], generator=rng, device=rng.device), shape[0], rng)


def _below(n: int, first: int, B: int, rng: torch.Generator) -> Tensor:
    return rows(lambda B: torch.randint(first, n, (B,), generator=rng, device=rng.device), B, rng)


def _uniform(shape: tuple[int, ...], rng: torch.Generator) -> Tensor:
    return _rand(shape, rng) * 2 - 1


def _chance(B: int, chance: float, rng: torch.Generator) -> Tensor:
    return (_rand((B,), rng) < chance).float()


def _mask(step: Step, B: int, rng: torch.Generator) -> Tensor | float:
    """Return 1 for every image that an operation applies to, else 0."""
    return 1.0 if step.chance == 100 else _chance(B, step.chance / 100, rng)


def _moved(x: Tensor, groups: list[tuple[Group, float]], rng: torch.Generator) -> Tensor:
    """Move pixels: windows first, then finite groups, then affine maps, whatever the order of the groups."""
    crops, finite, affine = [], [], []
    for group, strength in groups:
        for step in group.steps:
            if step.name == "crop":
                crops.append(_crop(step, strength, x.shape, rng))
            elif step.name not in AFFINE and step.name not in COLORED and step.name not in RANDOM:
                x, T = _element(x, step, strength, rng)
                finite += [] if T is None else [T]
        steps = [step for step in group.steps if step.name in AFFINE]
        if steps:
            affine.append(_affine(steps, strength, x.shape, rng))
    maps = crops + finite + affine
    if not maps:
        return x
    T = torch.eye(3).expand(len(x), 3, 3)
    for one in maps:
        T = T @ one
    return warp(x, T[:, None, :2].to(x))[:, 0]


def _in_image(T: Tensor, H: int, W: int) -> Tensor:
    """Return maps [B, 2, 3] of a square as 3 x 3 matrices in the coordinates of an image."""
    last = torch.tensor([0.0, 0.0, 1.0]).expand(len(T), 1, 3)
    return torch.cat([image_coordinates(T, H, W), last], dim=1)


def _affine(steps: list[Step], strength: float, shape: Sequence[int], rng: torch.Generator) -> Tensor:
    """Return random maps of all affine widths of a group together, as `learn` draws them."""
    B, _, H, W = shape
    transform = Affine2d((H, W), [step.name for step in steps])
    transform.set_widths({step.name: float(step.amount or 0.0) for step in steps})
    eps = _uniform((B, len(steps)), rng) * strength
    by_name = {step.name: step for step in steps}
    for k, name in enumerate(transform.names):
        eps[:, k] *= _mask(by_name[name], B, rng)
    T = affine_matrices(transform.eta, eps, transform.generators)
    return _in_image(T, H, W)


def _element(
    x: Tensor, step: Step, strength: float, rng: torch.Generator
) -> tuple[Tensor, Float[Tensor, "B 3 3"] | None]:
    """Return maps by random elements of a finite group; lattice translations, which are no maps, act at once."""
    B, _, H, W = x.shape
    group = build(step.name, "image", x.shape[1:])
    assert isinstance(group, FiniteGroup) and step.amount is not None
    j = _chance(B, step.amount / 100 * step.chance / 100 * strength, rng)
    if group.order > 2:
        j = j * _below(group.order, 1, B, rng)
    if isinstance(group, Flip):
        one = torch.ones_like(j)
        return x, torch.diag_embed(torch.stack([1 - 2 * j, one, one] if group.dim == -1 else [one, 1 - 2 * j, one], 1))
    if isinstance(group, CyclicRotation):
        angle = 2 * math.pi / group.order * j
        c, s, zero = angle.cos(), angle.sin(), torch.zeros_like(j)
        return x, _in_image(torch.stack([c, -s, zero, s, c, zero], dim=1).view(B, 2, 3), H, W)
    return group.orbit(x)[torch.arange(B), j.long()], None


def _crop(step: Step, strength: float, shape: Sequence[int], rng: torch.Generator) -> Tensor:
    """Return maps onto random windows: a share of the area uniform from the smallest to 1, of random proportions."""
    B, _, H, W = shape
    smallest = 1 - strength * (1 - float(step.amount or 100.0) / 100)
    area = smallest + (1 - smallest) * _rand((B,), rng)
    stretch = (_uniform((B,), rng) * (RATIO * strength / 2)).exp()
    sides = torch.stack([area.sqrt() * stretch, area.sqrt() / stretch], dim=1).clamp(max=1.0)
    # Points beyond the outermost pixels' centres would be black.
    reach = (1 - sides) * (1 - 1 / torch.tensor([float(W), float(H)]))
    T = torch.diag_embed(torch.cat([sides, torch.ones(B, 1)], dim=1))
    T[:, :2, 2] = _uniform((B, 2), rng) * reach
    if step.chance < 100:
        T = torch.where(_chance(B, step.chance / 100, rng).bool()[:, None, None], T, torch.eye(3))
    return T


def _colored(x: Tensor, steps: list[tuple[Step, float]], rng: torch.Generator) -> Tensor:
    if not steps:
        return x
    x = x.clone()
    for step, strength in steps:
        all_or_none = step.name == "greyscale"  # the less often the weaker the group
        share = step.chance / 100 * (strength if all_or_none else 1.0)
        touched = _chance(len(x), share, rng).nonzero()[:, 0]
        color = _color(step, x.shape[1]).to(x)
        eps = _uniform((len(x), 1, len(color.names)), rng)[touched].to(x) * strength
        x[touched] = color.act(x[touched], torch.ones_like(eps) if all_or_none else eps)[:, 0]
    return x.clamp_(0, 1)


def _color(step: Step, channels: int) -> Color:
    """Return the colour transformation of a step, with its widths set."""
    amount = float(step.amount or 0.0)
    if step.name != "jitter":
        color = Color(["grey" if step.name == "greyscale" else step.name])
        color.set_widths({color.names[0]: amount})
        return color
    color = Color(JITTERED if channels == 3 else JITTERED[:2])
    # SimCLR's proportions: hue by a quarter of the strength, strength 0.4 = factor 1.5 about half of its full one.
    color.eta.fill_(math.log(amount))
    if channels == 3:
        color.eta[-1] *= math.pi / 2
    return color


def _rolled(x: Tensor, chance: float, rng: torch.Generator) -> Tensor:
    """Return the images with their channels permuted cyclically by 0, 1 or 2 places."""
    B, C = x.shape[:2]
    by = _below(C, 0, B, rng) * _chance(B, chance, rng).long()
    source = (torch.arange(C) + by[:, None]) % C
    return x[torch.arange(B)[:, None], source]
