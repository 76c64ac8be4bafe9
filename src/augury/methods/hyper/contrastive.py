"""HyperSimCLR (paper C): contrastive pre-training, each descriptor with the views it should not tell apart.

    minimise  mean over descriptors i of  NT-Xent(p(f(v; theta(i))), p(f(v'; theta(i)))),    v, v' views by i's groups

p is a projection head, shared by all descriptors and thrown away (Chen et al., 2020). With a single descriptor the
generated weights are those of an ordinary network, and this is SimCLR: [1, 1] for all groups, [1, 0] for the first
alone (ventral-SimCLR), [0, 1] for the second (dorsal-SimCLR).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from augury.methods.hyper.losses import apart, nt_xent
from augury.methods.hyper.pretrainer import Pretrainer
from augury.methods.hyper.settings import AmortizeConfig
from augury.methods.hyper.views import Views
from augury.models.hyper import HyperExtractor
from augury.models.layers import seeded


class Contrastive(Pretrainer):
    """Trains by NT-Xent; no labels."""

    def __init__(
        self,
        extractor: HyperExtractor,
        views: Views,
        descriptors: Sequence[Sequence[float]],
        config: AmortizeConfig,
        rng: torch.Generator,
    ) -> None:
        d = extractor.features
        head = nn.Sequential(
            seeded(nn.Linear, d, d, rng=rng), nn.ReLU(), seeded(nn.Linear, d, config.projection, rng=rng)
        )
        super().__init__(extractor, head.to(config.device), views, descriptors, config)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> Tensor:
        """Return the mean NT-Xent of this step's descriptors."""
        M = len(self.descriptors)
        which = (
            range(M)
            if self.config.per_step >= M
            else torch.randperm(M, generator=rng)[: self.config.per_step]
        )
        f = self.features(x, list(map(int, which)), rng)
        z = self.heads(f)
        loss = torch.stack([nt_xent(a, b, self.config.temperature) for a, b in z]).mean()
        if self.config.invariance:
            loss = (
                loss
                + self.config.invariance
                * torch.stack([apart(a, b, self.config.centred) for a, b in f]).mean()
            )
        return loss
