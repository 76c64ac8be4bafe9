"""Inputs as frames of a page: pictures in one file, signals as lines, points as dots.

Frames are small, so that a page opens at once: pictures have at most `SIDE` pixels a side, large sheets are JPEGs, and
signals and clouds are thinned to what a frame of a few hundred pixels can show.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped, UInt8
from PIL import Image
from torch import Tensor

from augury.core.files import written_whole
from augury.data.rows import Rows
from augury.records.exhibits import BOX, Gallery

SIDE = 96  # largest side of a picture in pixels
LOSSLESS = 1_500_000  # largest size of a PNG sheet, in bytes before compression
SAMPLES, CHANNELS, POINTS, BACKDROP = 128, 3, 160, 300
"""Largest number drawn: samples and channels of a signal, points of a cloud, points behind coordinates."""
MARGIN = 0.06  # of a drawing, as a share of its frame


@dataclass(frozen=True, eq=False)
class Painter:
    """Turns inputs of one data set into frames, all on one scale."""

    folder: Path
    kind: str  # kind of the data, as in `Dataset`
    x: Float[Tensor | Rows, "N ..."]  # inputs that set the range of pixel values and of coordinates
    behind: tuple[list[int], ...] = ()  # dots behind every frame of coordinates, class by class

    def gallery(self, name: str, x: Float[Tensor, "R S ..."]) -> Gallery | None:
        """Return inputs as frames, a row for each R and a column for each S."""
        x = x.detach().cpu().float()
        if self.kind == "image":
            return self._pictures(name, x)
        if self.kind == "signal":
            return _drawn("line", _lines(x))
        if self.kind == "points":
            return _drawn("dots", _projected(_thinned(x, 2, POINTS))[:, :, None])
        if self.kind == "coordinates":
            return _drawn("dots", on_page(x, self.x)[:, :, None, None], self.behind)
        return None

    def _pictures(self, name: str, x: Float[Tensor, "R S C H W"]) -> Gallery:
        pixels = as_pixels(x, self.x)
        R, S, H, W = pixels.shape[:4]
        sheet = pixels.permute(0, 2, 1, 3, 4).reshape(R * H, S * W, -1).squeeze(-1)
        lossless = sheet.numel() <= LOSSLESS
        path = self.folder / f"{name}.{'png' if lossless else 'jpg'}"
        with written_whole(path) as temporary:
            picture = Image.fromarray(sheet.contiguous().numpy())
            picture.save(temporary, format="png" if lossless else "jpeg", optimize=True, quality=85)
        return Gallery(R, S, "picture", path.name, W, H)


def dots_behind(x: Float[Tensor | Rows, "N 2"], y: Shaped[Tensor, "N ..."], classes: int) -> tuple[list[int], ...]:
    keep = torch.linspace(0, len(x) - 1, min(len(x), BACKDROP)).round().long()
    dots, y = on_page(x[keep].cpu().float(), x), y[keep].cpu()
    groups = [dots[y == c] for c in range(classes)] if classes else [dots]
    return tuple(group.flatten().round().int().tolist() for group in groups)


def on_page(x: Float[Tensor, "*batch 2"], everything: Float[Tensor | Rows, "N 2"]) -> Float[Tensor, "*batch 2"]:
    """Return the positions of coordinates in a frame that holds everything; the origin is its middle, y is up."""
    half = torch.maximum(-everything.min(), everything.max()).clamp(min=1e-12).to(x)
    return BOX / 2 + BOX * (0.5 - MARGIN) / half * x * x.new_tensor([1.0, -1.0])


def as_pixels(x: Float[Tensor, "R S C H W"], like: Float[Tensor | Rows, "N C H W"]) -> UInt8[Tensor, "R S h w c"]:
    """Return images as bytes, grey or colour, at most `SIDE` a side."""
    low, high = min(0.0, float(like.min())), max(1.0, float(like.max()))
    x = (x - low) / (high - low)
    if x.shape[2] != 3:
        x = x.mean(2, keepdim=True)
    factor = SIDE / max(x.shape[-2:])
    if factor < 1:
        size = [max(1, round(side * factor)) for side in x.shape[-2:]]
        x = F.interpolate(x.flatten(0, 1), size=size, mode="area").unflatten(0, x.shape[:2])
    return (255 * x.clamp(0, 1)).round().to(torch.uint8).permute(0, 1, 3, 4, 2)


def _drawn(style: str, xy: Float[Tensor, "R S K P 2"], behind: tuple[list[int], ...] = ()) -> Gallery:
    strokes = xy.flatten(3).round().int().tolist()
    return Gallery(xy.shape[0], xy.shape[1], style, strokes=tuple(strokes), backdrop=behind)


def _thinned(x: Tensor, dim: int, most: int) -> Tensor:
    n = x.shape[dim]
    return x.index_select(dim, torch.linspace(0, n - 1, min(n, most)).round().long())


def _lines(x: Float[Tensor, "R S C T"]) -> Float[Tensor, "R S K P 2"]:
    """Return signals as points of lines, each row on one scale."""
    x = _thinned(x[:, :, :CHANNELS], 3, SAMPLES)
    low, high = (end(dim=(1, 2, 3), keepdim=True) for end in (x.amin, x.amax))
    y = BOX * (1 - MARGIN - (1 - 2 * MARGIN) * (x - low) / (high - low).clamp(min=1e-12))
    across = torch.linspace(MARGIN * BOX, (1 - MARGIN) * BOX, x.shape[-1])
    return torch.stack([across.expand_as(y), y], dim=-1)


def _projected(x: Float[Tensor, "R S P 3"]) -> Float[Tensor, "R S P 2"]:
    """Project clouds from a corner, so that a turn about any axis is visible, each row on one scale; y is up."""
    across = (x[..., 0] - x[..., 2]) * math.sqrt(3) / 2
    down = (x[..., 0] + x[..., 2]) / 2 - x[..., 1]
    xy = torch.stack([across, down], dim=-1)
    half = xy.abs().amax(dim=(1, 2, 3), keepdim=True).clamp(min=1e-12)
    return BOX / 2 + BOX * (0.5 - MARGIN) * xy / half
