"""Measured invariance of features: the cosine between an image and its view, beside that of random pairs.

    cos(f(x; i), f(g_k x; i))  for each group k,    cos(f(x; i), f(x'; i))  for other images x'

The second figure belongs to the first: features that collapse to one direction have a cosine of 1 with everything.
`relative` is (first - second) / (1 - second): 1 for invariance, 0 if a view is as far away as another image.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError
from augury.data.rows import Rows
from augury.methods.hyper.groups import Group
from augury.methods.hyper.views import Views
from augury.models.hypernetwork import HyperExtractor


@dataclass(frozen=True, eq=False)
class Measured:
    """Cosines at M descriptors."""

    groups: tuple[str, ...]
    descriptors: Float[Tensor, "M K"]  # where
    cosine: Float[Tensor, "M G"]  # mean cosine between an image and its view, for each group
    random: Float[Tensor, " M"]  # mean cosine between an image and another

    @property
    def relative(self) -> Float[Tensor, "M G"]:
        """1 for invariance, 0 if a view is as far away as another image."""
        return (self.cosine - self.random[:, None]) / (1 - self.random[:, None]).clamp(min=1e-12)


@torch.no_grad()
def measure(
    extractor: HyperExtractor,
    x: Float[Tensor, "n C H W"],
    groups: Sequence[Group],
    descriptors: Float[Tensor, "M K"],
    rng: torch.Generator,
    samples: int = 2,
) -> Measured:
    """Measure the invariance of an extractor's features to groups of transformations.

    Batch normalisation takes the statistics of `x`. The views are the same at every descriptor.
    """
    if len(x) < 2:
        raise InputError(f"random pairs need at least two images; got {len(x)}.")
    views = [torch.cat([Views([group])(x, [1.0], rng) for _ in range(samples)]) for group in groups]
    # A random cycle through all images pairs each with another one.
    order = torch.randperm(len(x), generator=rng)
    partner = torch.empty_like(order)
    partner[order] = order.roll(1)
    cosine, random = [], []
    with extractor.calibrated(x):
        for i in descriptors:
            net = extractor.materialise(i)
            f = net(x)
            random.append(F.cosine_similarity(f, f[partner], dim=1).mean())
            again = f.repeat(samples, 1)
            cosine.append(torch.stack([F.cosine_similarity(again, net(v), dim=1).mean() for v in views]))
    return Measured(tuple(g.name for g in groups), descriptors, torch.stack(cosine), torch.stack(random))


def summarise(
    extractor: HyperExtractor,
    x: Float[Tensor | Rows, "n C H W"],
    groups: Sequence[Group],
    rng: torch.Generator,
    most: int = 500,
) -> dict[str, dict[str, float]]:
    """Measure, for every group, what its entry of the descriptor does: at 0 and at 1, all other entries at 1."""
    K = len(groups)
    at = torch.ones(K + 1, K).to(next(extractor.parameters()))
    at[range(K), range(K)] = 0.0
    found = measure(extractor, x[:most].to(at.device), groups, at, rng)
    return {
        group.name: {
            "at_0": float(found.cosine[k, k]),
            "at_1": float(found.cosine[K, k]),
            "random_at_0": float(found.random[k]),
            "random_at_1": float(found.random[K]),
        }
        for k, group in enumerate(groups)
    }
