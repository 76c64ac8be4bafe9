"""The inputs on which a model is least invariant: found, drawn as one image, and written to the folder of an audit.

A row of the picture is an input, its view, and the saliency maps of both in the frame of the input: red raises the
largest logit, blue lowers it, and an invariant model shows the same map twice. The folder gets

    audit.json          the record `Audit`
    views/worst.json    a `Gallery` with such a row for each of the worst inputs
    views/worst.png     its pictures
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from augury.auditing.data import Inputs
from augury.auditing.measures import Comparison
from augury.auditing.orbits import Orbit
from augury.core.errors import InputError
from augury.core.files import write_text, written_whole
from augury.core.world import World
from augury.records.exhibits import VIEWS, WORST, Gallery
from augury.records.results import Audit, Worst
from augury.training.frames import Painter
from augury.training.run_folder import RunFolder


@dataclass(frozen=True, eq=False)
class Case:
    """One input with its worst view."""

    found: Worst
    x: Tensor
    x_g: Tensor
    m: Tensor | None  # saliency map of the input
    m_g: Tensor | None  # saliency map of the view, in the frame of the input


@dataclass(frozen=True, eq=False)
class Examined:
    """An audit, with its tensors."""

    audit: Audit
    cases: list[Case]  # the worst inputs with their views and saliency maps


class WorstCases:
    """Keeps the k worst cases of all that it is shown."""

    def __init__(self, k: int, inputs: Inputs, orbit: Orbit) -> None:
        self.k, self.inputs, self.orbit = k, inputs, orbit
        self.cases: list[Case] = []

    def add(self, seen: Comparison, x: Tensor, first: int) -> None:
        """Look at a batch."""
        if self.k == 0:
            return
        names, y = dict(enumerate(self.inputs.class_names)), self.inputs.y
        worst, view = seen.LI.max(dim=1)
        for b in torch.topk(worst, min(self.k, len(x))).indices.tolist():
            s, label = int(view[b]), None if y is None else int(y[first + b])
            before, after = int(seen.f[b].argmax()), int(seen.f_g[b, s].argmax())
            found = Worst(
                index=first + b,
                label=None if label is None else names.get(label, str(label)),
                prediction=names.get(before, str(before)),
                prediction_moved=names.get(after, str(after)),
                strength=self.orbit.strengths[s],
                LI=float(worst[b]),
                SI=None if seen.SI is None else float(seen.SI[b, s]),
            )
            m = None if seen.m is None else _own(seen.m[b])
            m_g = None if seen.m_g is None else _own(seen.m_g[b, s])
            self.cases.append(Case(found, _own(x[b]), _own(seen.views[b, s]), m, m_g))
        self.keep(self.cases)

    def keep(self, cases: Sequence[Case]) -> None:
        self.cases = sorted(cases, key=lambda case: -case.found.LI)[: self.k]

    def over(self, world: World) -> None:
        """Keep the worst of all processes."""
        self.keep([case for cases in world.objects(self.cases) for case in cases])

    def records(self) -> tuple[Worst, ...]:
        return tuple(case.found for case in self.cases)


def _own(t: Tensor) -> Tensor:
    return t.detach().cpu().clone()


TILE, GAP = 112, 4  # pixels of a tile's longer side, and between tiles


def save_worst(path: Path, cases: Sequence[Case]) -> None:
    """Write the picture: a row for each case; columns input, view, map of the input, map of the view."""
    if path.suffix != ".png":
        raise InputError(f"the picture of the worst inputs must be a .png; got {path}.")
    if not cases or cases[0].x.ndim != 3:
        raise InputError("only images can be shown as a picture. Leave --pictures out.")
    factor = max(1, TILE // max(cases[0].x.shape[1:]))
    rows = [[(255 * t).round().astype(np.uint8).repeat(factor, 0).repeat(factor, 1) for t in _tiles(c)] for c in cases]
    height, width = rows[0][0].shape[:2]
    sheet = np.full((len(rows) * (height + GAP) + GAP, len(rows[0]) * (width + GAP) + GAP, 3), 255, np.uint8)
    for i, row in enumerate(rows):
        for j, tile in enumerate(row):
            top, left = GAP + i * (height + GAP), GAP + j * (width + GAP)
            sheet[top : top + height, left : left + width] = tile
    with written_whole(path) as temporary:
        Image.fromarray(sheet).save(temporary, format="png")


def _tiles(case: Case) -> list[np.ndarray]:
    """Return input, view and maps as colours [H, W, 3] from 0 to 1."""
    low, high = float(case.x.min()), float(case.x.max())
    images = [x if len(x) == 3 else x.mean(0, keepdim=True).expand(3, -1, -1) for x in (case.x, case.x_g)]
    scaled = [((image - low) / max(high - low, 1e-12)).clamp(0, 1).permute(1, 2, 0).float().numpy() for image in images]
    return scaled + [map_colours(m) for m in (case.m, case.m_g) if m is not None]


def map_colours(m: Tensor) -> np.ndarray:
    """Return a signed map as red on white on blue, relative to its own largest value."""
    total = m.sum(0).float()
    strength = (total / total.abs().max().clamp(min=1e-30)).numpy()[..., None]
    colour = np.where(strength > 0, np.array([0.75, 0.1, 0.1]), np.array([0.1, 0.2, 0.75]))
    return 1 - np.abs(strength) * (1 - colour)


def leave_audit(folder: Path, seen: Examined) -> None:
    """Write all that an audit found."""
    gallery = worst_gallery(folder / VIEWS, seen.cases)
    (folder / VIEWS / WORST).unlink(missing_ok=True)
    if gallery is not None:
        write_text(folder / VIEWS / WORST, gallery.dumps(None))
    RunFolder(folder).write(seen.audit)


def worst_gallery(folder: Path, cases: Sequence[Case]) -> Gallery | None:
    """Return the worst inputs as frames."""
    if not cases or cases[0].x.ndim not in (2, 3):
        return None
    if cases[0].x.ndim == 3:
        tiles = torch.from_numpy(np.stack([_tiles(case) for case in cases])).permute(0, 1, 4, 2, 3).float()
        return Painter(folder, "image", tiles[:, 0]).gallery("worst", tiles)
    kind = "points" if cases[0].x.shape[-1] == 3 else "signal"
    clouds = [torch.stack([case.x, case.x_g]) for case in cases] if kind == "points" else []
    rows = torch.stack(clouds or [_signals(case) for case in cases])
    return Painter(folder, kind, rows[:, 0]).gallery("worst", rows)


def _signals(case: Case) -> Tensor:
    """Return input and view to one scale, and each map to its own: all within [-1, 1]."""
    size = max(float(case.x.abs().max()), float(case.x_g.abs().max()), 1e-30)
    maps = [m / m.abs().max().clamp(min=1e-30) for m in (case.m, case.m_g) if m is not None]
    return torch.stack([case.x / size, case.x_g / size, *maps])
