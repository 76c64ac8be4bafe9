"""The only random lines of a transformation: eps uniform on [-1, 1]^K, in three ways.

`independent` is the papers'. `stratified` cuts [-1, 1] into S cells and visits each cell once per image and
dimension (a Latin hypercube): every draw is still uniform, so the orbit average stays unbiased, and its
variance falls. `grid` is paper B's deterministic surrogate: equally spaced points of the cube, for small K.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError

SAMPLINGS = ("independent", "stratified", "grid")


def independent(B: int, S: int, K: int, rng: torch.Generator) -> Float[Tensor, "{B} {S} {K}"]:
    """Draw eps independently for every image, sample and dimension."""
    return torch.rand(B, S, K, generator=rng, device=rng.device) * 2 - 1


def stratified(B: int, S: int, K: int, rng: torch.Generator) -> Float[Tensor, "{B} {S} {K}"]:
    """Draw eps so that each of S equal cells holds one sample of every image, dimension by dimension."""
    cell = torch.rand(B, S, K, generator=rng, device=rng.device).argsort(dim=1)
    within = torch.rand(B, S, K, generator=rng, device=rng.device)
    return (cell + within) * (2 / S) - 1


def grid(S: int, K: int) -> Float[Tensor, "{S} {K}"]:
    """Return S equally spaced points of [-1, 1]^K."""
    m = round(S ** (1 / K))
    if m**K != S:
        below, above = max(m - 1, 1) ** K if m**K > S else m**K, (m + 1) ** K if m**K < S else m**K
        raise InputError(
            f"an equally spaced grid in {K} dimensions needs S = m^{K} samples; got S = {S}. "
            f"Take S = {below} or {above}, or sampling='stratified', which takes any S."
        )
    axis = torch.linspace(-1, 1, m) if m > 1 else torch.zeros(1)
    return torch.cartesian_prod(*[axis] * K).reshape(S, K)
