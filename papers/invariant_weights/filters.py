"""Filter banks: Figure 3 (over training), Figure 4 (affine, by data set) and Figure 6 (CIFAR-10), of the ReLU network.

Each row shows copies of a first-layer filter under transformations of the learned widths: equally spaced ones, or
random ones. The filters are those that weigh most in the outputs; red is positive, blue negative. In a line of results
a bank is text: a byte for each pixel, compressed.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zlib import compress, decompress

import numpy as np
from matplotlib.figure import Figure

from papers.catalog import Grid, Item
from papers.claims import Claim, Held
from papers.figures import colours, mosaic
from papers.invariant_weights.budgets import row_of
from papers.invariant_weights.training import COPIES, GRID, SHOWN, run
from papers.invariant_weights.transformations import widths
from papers.lila.figure2 import to_eta
from papers.results import Result

if TYPE_CHECKING:
    from torch import Tensor

LEVELS = 127
"""A picture is kept as bytes up to this, relative to the largest value of its bank."""


def pack(bank: "Tensor") -> dict[str, Any]:
    """Return pictures as JSON types."""
    import torch

    largest = bank.abs().amax((-4, -3, -2, -1), keepdim=True).clamp(min=1e-30)
    whole = (LEVELS * bank / largest).round().to(torch.int8).contiguous().numpy()
    return {"shape": list(bank.shape), "bytes": b64encode(compress(whole.tobytes(), 9)).decode()}


def unpack(packed: dict[str, Any]) -> Any:
    return np.frombuffer(decompress(b64decode(packed["bytes"])), np.int8).reshape(packed["shape"])


def pictures(copies: Any) -> list[Any]:
    """Return filters [S, C, H, W] as colours: of three channels as they are, otherwise their sum, signed."""
    shown = np.moveaxis(copies, 1, 3) if copies.shape[1] == 3 else copies.astype(int).sum(1)
    return [colours(picture, LEVELS) for picture in shown]


def write(results: Sequence[Result]) -> str:
    units = {", ".join(map(str, r.extra["units"])) for r in results if "banks" in r.extra}
    turned = [r for r in results if row_of(r.cell) == GRID]
    which = "; ".join(sorted(units)) or "-"
    text = f"Pictures of units {which}, first seed. The paper shows pictures without numbers.\n"
    for r in turned:
        width = r.invariance.widths["rotation"]
        reached = f"{width.value:.1f} degrees after {r.epoch} epochs (the paper: 179; planted 180)"
        text += f"\nSeed {r.cell.seed}: {reached}.\n"
    return f"{text}\n{widths(results)}" if len(turned) < len(results) else text


def draw(results: Sequence[Result]) -> Mapping[str, Figure]:
    """Draw the banks of every run that kept some: a row per snapshot, its filters side by side."""
    rows: dict[str, list[tuple[str, list[Any]]]] = {}
    for result in results:
        for name, packed in result.extra.get("banks", {}).items():
            for epoch, filters in zip(result.extra["bank_epochs"], unpack(packed), strict=True):
                label = f"epoch {epoch}" if row_of(result.cell) == GRID else result.cell.variant
                rows.setdefault(name, []).append((label, [p for copies in filters for p in pictures(copies)]))
    columns = [f"{'ab'[unit]}{copy + 1}" for unit in range(SHOWN) for copy in range(COPIES)]
    titles = {"equal": "equally spaced", "sampled": "random"}
    about = "copies 1 to 7 of filters a and b, transformed by the learned widths (red: positive, blue: negative)"
    return {name: mosaic(bank, columns, f"{titles[name]} {about}") for name, bank in rows.items()}


def planted_moves(results: Sequence[Result]) -> Held:
    """Return whether each planted transformation that a run may learn acts on its filters: eta above 0.1."""
    return {
        f"{r.cell.variant}, {row_of(r.cell)}, {name}": to_eta(w.value, w.unit) > 0.1
        for r in results
        if r.cell.seed == 0
        for name, w in r.invariance.widths.items()
        if w.planted is not None
    }


ADAPTS = (
    "the first layer adapts to the widths of now: 3.5 and 0 of 8 px, 72.1 %, where 1.4 would count. Trials, with the "
    "profile before it was limited: with a prior of .1 on that layer 3.5 and 1.2 px, 72.3 %; with 7,500 images for 128 "
    "units 13.6 and 1.25 px, 89.4 %: one direction is still left to this layer"
)
CLAIMS = (Claim("the filters are moved by the planted transformations", planted_moves, ADAPTS),)


def filters_item(what: str, grid: Grid) -> Item:
    return Item(what, grid, write, draw, run, claims=CLAIMS)
