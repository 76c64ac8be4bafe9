"""The objectives of pre-training: NT-Xent (SimCLR) and the invariance term.

    nt_xent    - mean over the 2B views a of  log  exp(z_a . z_b / tau) / sum_{c != a} exp(z_a . z_c / tau),
               z of unit length, b the other view of the same image
    apart      1 - mean cosine between the features of two views of the same image

The plain cosine is lowered in part by features that all point one way, whatever the image: say how alike random pairs
are beside it. About the mean of the batch, two images have a cosine near 0 whatever the features do.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def nt_xent(
    z: Float[Tensor, "B d"], z_other: Float[Tensor, "B d"], temperature: float = 0.5
) -> Float[Tensor, ""]:
    """Return the normalised temperature-scaled cross-entropy of Chen et al. (2020)."""
    B = len(z)
    unit = F.normalize(torch.cat([z, z_other]), dim=1)
    logits = (unit @ unit.T) / temperature
    logits = logits.masked_fill(torch.eye(2 * B, dtype=torch.bool, device=z.device), -torch.inf)
    partner = torch.arange(2 * B, device=z.device).roll(B)
    return F.cross_entropy(logits, partner)


def apart(f: Float[Tensor, "B d"], f_other: Float[Tensor, "B d"], centred: bool = False) -> Float[Tensor, ""]:
    """Return how far apart the features of two views are: 0 where they point the same way."""
    if centred:
        mean = (f.mean(0) + f_other.mean(0)) / 2
        f, f_other = f - mean, f_other - mean
    return 1 - F.cosine_similarity(f, f_other, dim=1).mean()
