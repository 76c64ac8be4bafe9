"""Writes an audit to a folder: the record, and its worst inputs as frames that a page can show.

audit.json          the record `Audit`
views/worst.json    a `Gallery`, a row for each of the worst inputs: input, view, and the saliency maps of both
views/worst.png     its pictures
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from augury.audit.pictures import map_colours, picture_of
from augury.audit.run import Examined
from augury.audit.worst import Case
from augury.core.files import write_text
from augury.exhibits import AUDIT, VIEWS, WORST, Gallery
from augury.training.frames import Painter


def leave_audit(folder: Path, seen: Examined) -> None:
    """Write all that an audit found."""
    gallery = worst_gallery(folder / VIEWS, seen.cases)
    (folder / VIEWS / WORST).unlink(missing_ok=True)
    if gallery is not None:
        write_text(folder / VIEWS / WORST, json.dumps(gallery.to_json(), separators=(",", ":")) + "\n")
    write_text(folder / AUDIT, seen.audit.dumps())


def worst_gallery(folder: Path, cases: Sequence[Case]) -> Gallery | None:
    """Return the worst inputs as frames."""
    if not cases or cases[0].x.ndim not in (2, 3):
        return None
    if cases[0].x.ndim == 3:
        tiles = torch.stack([_pictures(case) for case in cases])
        return Painter(folder, "image", tiles[:, 0]).gallery("worst", tiles)
    kind = "points" if cases[0].x.shape[-1] == 3 else "signal"
    rows = torch.stack([_clouds(case) if kind == "points" else _signals(case) for case in cases])
    return Painter(folder, kind, rows[:, 0]).gallery("worst", rows)


def _pictures(case: Case) -> Tensor:
    """Return input, view and maps as colours [4, 3, H, W]."""
    low, high = float(case.x.min()), float(case.x.max())
    tiles = [picture_of(x, low, high) for x in (case.x, case.x_g)]
    tiles += [map_colours(m) for m in (case.m, case.m_g) if m is not None]
    return torch.stack([torch.as_tensor(tile).permute(2, 0, 1).float() for tile in tiles])


def _clouds(case: Case) -> Tensor:
    return torch.stack([case.x, case.x_g])


def _signals(case: Case) -> Tensor:
    """Return input and view to one scale, and each map to its own: all within [-1, 1]."""
    size = max(float(case.x.abs().max()), float(case.x_g.abs().max()), 1e-30)
    maps = [m / m.abs().max().clamp(min=1e-30) for m in (case.m, case.m_g) if m is not None]
    return torch.stack([case.x / size, case.x_g / size, *maps])
