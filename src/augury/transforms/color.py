"""Colour transformations and blur of images, differentiable in their widths.

Brightness, contrast, saturation, hue and greying are all affine in a pixel's colour c and leave grey colours
grey, so that their composition is

    c -> M c + o 1,    M = Grey Hue Saturation (contrast * brightness),    o = (1 - contrast) brightness *
    mean luma,

one C x C matrix and one offset per view: one pass over the pixels, whatever the number of operations. Blur
commutes with such a map and acts first. The operators are the usual ones (kornia's, torchvision's) with two
changes that learning needs. Nothing is clipped to [0, 1]: clipping has no gradient, and black pixels sit on
its edge. Hue turns colours about the grey axis instead of going through HSV, which is not differentiable at
grey; the two agree at multiples of 120 degrees. With eta = 0 every view is the image, bit for bit.

Blur is diffusion on the pixel grid, smooth in its width down to none at all, where a Gaussian sampled at whole pixels
is 0 / 0 (and at 0.1 pixels has a neighbouring tap of 2e-22). It solves the heat equation

    d/dt x = 1/2 (Laplacian of x),    reflecting borders,

and has variance t exactly, for every t >= 0. The cosine transform diagonalises the Laplacian, so

    blur_t(x) = D^T (exp(-t (lambda_k + lambda_l)) * (D x D^T)) D,    lambda_k = 1 - cos(pi k / n):

one transform of each image, one product and one inverse transform for each view, no kernel to truncate.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.transforms.base import Transform, magnitude
from augury.transforms.vocabulary import COLOR

LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in the grey version of an image

COLORS = {name: COLOR[name].spec(name) for name in COLOR["color"].parts}
"""The widths by name, in the order in which they act (blur commutes with the rest)."""

NEED_RGB = tuple(name for name in COLORS if COLOR[name].needs_rgb)
"""Those that mean something for red, green and blue only."""

ONE_WAY = ("grey", "blur")  # those that have one direction


class Color(Transform):
    """Random changes of colour and sharpness.

    | width | a view, with e = eps eta | shown as | upper bound |
    |---|---|---|---|
    | brightness | exp(e) x | factor | 10: an 8-bit image darkened more holds few levels |
    | contrast | mean + exp(e) (x - mean), mean luma of the image | factor | 10 |
    | saturation | grey(x) + exp(e) (x - grey(x)) | factor | 10 |
    | hue | colours turned by e about the grey axis | degrees | 180 |
    | grey | (1 - abs e) x + abs(e) grey(x) | % of grey | 100 |
    | blur | variance abs e of the blur, in square pixels | px (standard deviation) | 8 |

    Parameters
    ----------
    names
        Which of them may act. Default: all. Saturation, hue and grey need three channels.
    sampling
        How eps is drawn.
    """

    kind = "image"

    def __init__(self, names: Sequence[str] = tuple(COLORS), sampling: str = "independent") -> None:
        wanted = [choose("colour transformation", name, COLORS) for name in names]
        if not wanted:
            raise InputError(f"names must hold at least one of {', '.join(COLORS)}; got none.")
        super().__init__([spec for name, spec in COLORS.items() if name in wanted], sampling)
        self.one_way = tuple(name for name in self.names if name in ONE_WAY)

    def check(self, x: Tensor) -> None:
        """Raise unless `x` are images with the channels that the widths need."""
        super().check(x)
        rgb = [name for name in self.names if name in NEED_RGB]
        if rgb and x.shape[1] != 3:
            fits = ", ".join(name for name in COLORS if name not in NEED_RGB)
            raise InputError(
                f"{' and '.join(rgb)} need images with 3 channels (red, green, blue); got {x.shape[1]}. "
                f"For any number of channels there are {fits}."
            )

    def act(self, x: Float[Tensor, "B C H W"], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S C H W"]:
        """Change the colours of every image S times."""
        self.check(x)
        eta = self.eta.to(eps)
        one_way = {name: eps[..., k].abs() * magnitude(eta[k]) for k, name in enumerate(self.names)}
        e = {name: eps[..., k] * eta[k] for k, name in enumerate(self.names)}
        views = blur(x, one_way.pop("blur")) if "blur" in e else x[:, None]
        if "grey" in e:
            e["grey"] = one_way["grey"].clamp(max=1.0)
        if self.names != ("blur",):
            M = color_matrices(e, x.shape[1])
            views = (M @ views.flatten(3)).unflatten(-1, x.shape[-2:])
        if "contrast" in e:
            views = views + _contrast_offset(x, e)[..., None, None, None]
        return views


def _contrast_offset(x: Tensor, e: dict[str, Tensor]) -> Tensor:
    mean = x.mean((-2, -1))
    luma = mean @ torch.tensor(LUMA).to(x) if x.shape[1] == 3 else mean.mean(-1)
    brightness = e["brightness"].exp() if "brightness" in e else 1.0
    return -torch.expm1(e["contrast"]) * brightness * luma[:, None]


def color_matrices(e: dict[str, Float[Tensor, "B S"]], C: int) -> Float[Tensor, "B S {C} {C}"]:
    """Return the linear part of the colour map of every view."""
    some = next(iter(e.values()))
    eye = torch.eye(C, dtype=some.dtype, device=some.device)
    gain = sum((e[name] for name in ("brightness", "contrast") if name in e), torch.zeros_like(some)).exp()
    M = gain[..., None, None] * eye
    if "saturation" in e:
        M = _towards_grey(-torch.expm1(e["saturation"]), eye) @ M
    if "hue" in e:
        M = _turn_about_grey(e["hue"], eye) @ M
    if "grey" in e:
        M = _towards_grey(e["grey"], eye) @ M
    return M


def _towards_grey(share: Tensor, eye: Tensor) -> Tensor:
    grey = torch.tensor(LUMA).to(eye).expand(3, 3)
    return eye + share[..., None, None] * (grey - eye)


def _turn_about_grey(angle: Tensor, eye: Tensor) -> Tensor:
    # Rodrigues about (1, 1, 1) / sqrt 3; red goes to green at 120 degrees.
    cross = (eye.roll(1, 0) - eye.roll(-1, 0)) / math.sqrt(3)
    c, s = angle.cos()[..., None, None], angle.sin()[..., None, None]
    return c * eye + (1 - c) / 3 + s * cross


def _cosine_basis(n: int) -> tuple[Tensor, Tensor]:
    """Return the orthonormal cosine transform D of n pixels and the eigenvalues lambda."""
    k = torch.arange(n, dtype=torch.float64)
    D = torch.cos(math.pi / n * k[:, None] * (k + 0.5)) * math.sqrt(2 / n)
    D[0] /= math.sqrt(2)
    return D, 1 - torch.cos(math.pi / n * k)


def blur(x: Float[Tensor, "B C H W"], t: Float[Tensor, "B S"]) -> Float[Tensor, "B S C H W"]:
    """Blur every image S times."""
    (D_h, on_h), (D_w, on_w) = _cosine_basis(x.shape[-2]), _cosine_basis(x.shape[-1])
    D_h, D_w = D_h.to(x), D_w.to(x)
    decay = torch.expm1(-t[..., None, None] * (on_h[:, None] + on_w).to(t))
    spectrum = D_h @ x @ D_w.mT
    return x[:, None] + D_h.mT @ (decay[:, :, None] * spectrum[:, None]) @ D_w
