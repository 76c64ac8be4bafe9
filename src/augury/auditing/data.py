"""The inputs of an audit, from any kind of data, and corrupted copies of them.

A network that is invariant by construction is so on any input, one that has learned it only on similar ones.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.data.named import NAMED
from augury.data.rows import Rows
from augury.data.targets import Part
from augury.data.unlabelled import load_inputs

PARTS = ("test", "train")


@dataclass(frozen=True, eq=False)
class Inputs:
    """A set of inputs to audit a model on."""

    x: Float[Tensor | Rows, "N ..."]
    y: Shaped[Tensor, " N"] | None  # class labels; None where there are none, or for regression
    class_names: tuple[str, ...]  # a name for each class; empty where there are no labels
    kind: str  # "image", "signal", ..., as in `Dataset`
    regression: bool  # whether the outputs are numbers and not logits
    n_outputs: int  # outputs that a model of these data has; 1 if unknown
    source: str  # where they come from

    def sample(self, n: int | None, seed: int) -> "Inputs":
        """Return n of the inputs, drawn at random; all where there are no more."""
        if n is None or n >= len(self.x):
            return self
        keep = torch.randperm(len(self.x), generator=generator(seed))[:n]
        return replace(self, x=self.x[keep], y=None if self.y is None else self.y[keep])


def read_inputs(data: Any, part: str = "test", kind: str | None = None, size: tuple[int, int] | None = None) -> Inputs:
    """Return the inputs of any source, with labels or without; images of a folder in the size that the model takes."""
    choose("part", part, PARTS)
    files = isinstance(data, str | Path) and data not in NAMED and Path(data).is_dir()
    options = {"size": size} if files and size is not None else {}
    found = data if isinstance(data, Dataset | Part) else load_inputs(data, kind=kind, **options)
    if isinstance(found, Dataset):
        test = part == "test" and len(found.x_test)
        x, y = (found.x_test, found.y_test) if test else (found.x_train, found.y_train)
        numbers = found.task == "regression"
        labels = None if numbers else y
        inputs = Inputs(x, labels, found.class_names, found.kind, numbers, found.n_outputs, found.source)
    else:
        same = isinstance(data, Tensor) and data.is_floating_point() and data.shape == found.x.shape
        inputs = Inputs(data if same else found.x, None, (), found.kind, False, 1, found.source)
    if len(inputs.x) < 2:
        raise InputError(
            f"an audit needs at least two inputs, for a standard error and the spread of the logits; "
            f"got {len(inputs.x)} ({inputs.source}). A few hundred give figures worth reading."
        )
    return inputs


def noisy(x: Float[Tensor, "N ..."], rng: torch.Generator) -> Float[Tensor, "N ..."]:
    """Add Gaussian noise of the standard deviation of the inputs themselves."""
    return x + x.std() * torch.randn(x.shape, generator=rng, device=rng.device).to(x)


def inverted(x: Float[Tensor, "N ..."], rng: torch.Generator) -> Float[Tensor, "N ..."]:
    """Exchange dark and bright."""
    return x.min() + x.max() - x


def faded(x: Float[Tensor, "N ..."], rng: torch.Generator) -> Float[Tensor, "N ..."]:
    """Take three quarters of the contrast away."""
    return x.mean() + (x - x.mean()) / 4


def occluded(x: Float[Tensor, "N C H W"], rng: torch.Generator) -> Float[Tensor, "N C H W"]:
    """Hide a square of half the shorter side, at a random place of each image, under its mean."""
    N, H, W = len(x), *x.shape[-2:]
    side = min(H, W) // 2
    place = torch.rand(2, N, generator=rng, device=rng.device).to(x)
    hidden = []
    for start, size in zip(place, (H, W), strict=True):
        first = (start * (size - side + 1)).floor()[:, None]
        pixels = torch.arange(size, device=x.device)
        hidden.append((pixels >= first) & (pixels < first + side))
    under = hidden[0][:, None, :, None] & hidden[1][:, None, None, :]
    return torch.where(under, x.mean((1, 2, 3), keepdim=True), x)


CORRUPTIONS = {"noisy": noisy, "inverted": inverted, "faded": faded, "occluded": occluded}


def corrupted(inputs: Inputs, seed: int) -> dict[str, Inputs]:
    """Return a copy of the inputs for each corruption that makes sense for their kind: noise alone but for images."""
    names = CORRUPTIONS if inputs.kind == "image" else ("noisy",)
    return {name: replace(inputs, x=CORRUPTIONS[name](inputs.x[:], generator(seed))) for name in names}
