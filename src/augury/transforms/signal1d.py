"""Time shift, time stretch and amplitude of signals [B, C, T], with learnable widths.

Time is the x axis of an image one pixel high, so shift and stretch are the affine maps of `affine_matrices`
(T = exp of the sum of two generators) and the sampling is that of `warp`: linear, zero outside.

    view(t) = exp(eps_a eta_a) x(T t)
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.transforms.affine_matrices import GENERATORS, G, affine_matrices
from augury.transforms.base import Transform
from augury.transforms.vocabulary import SIGNAL
from augury.transforms.warp import warp

SIGNAL_GENERATORS = {"time_shift": "translate_x", "time_stretch": "scale_x", "amplitude": None}
"""Names of the generators, and the affine generator of the time axis that each is."""


class Signal1d(Transform):
    """Random shifts, stretches and gains of signals.

    | width | eta | shown as |
    |---|---|---|
    | time_shift | shift, as a share of half the length | samples |
    | time_stretch | log of the factor of time | factor |
    | amplitude | log of the gain | factor |

    Parameters
    ----------
    length
        Samples T of a signal.
    generators
        Which of "time_shift", "time_stretch", "amplitude" may act. Default: all of them.
    sampling
        How eps is drawn.
    """

    kind = "signal"

    def __init__(
        self,
        length: int,
        generators: Sequence[str] = tuple(SIGNAL_GENERATORS),
        sampling: str = "independent",
    ) -> None:
        wanted = [choose("generator", name, SIGNAL_GENERATORS) for name in generators]
        if not wanted:
            raise InputError(
                f"generators must name at least one of {', '.join(SIGNAL_GENERATORS)}; got none."
            )
        names = [name for name in SIGNAL_GENERATORS if name in wanted]
        super().__init__([SIGNAL[name].spec(name, length) for name in names], sampling)
        self.length = length
        of_time = [GENERATORS.index(SIGNAL_GENERATORS[n]) for n in names if SIGNAL_GENERATORS[n]]
        self.time_generators = G[of_time]

    def act(self, x: Float[Tensor, "B C T"], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S C T"]:
        """Shift, stretch and amplify every signal S times."""
        if x.shape[-1] != self.length:
            raise InputError(
                f"Signal1d was made for signals of {self.length} samples; got {x.shape[-1]}. "
                f"Make another with length={x.shape[-1]}."
            )
        eta, K = self.eta.to(eps), len(self.time_generators)
        views = x[:, None]
        if K:
            T = affine_matrices(eta[:K], eps[..., :K], self.time_generators)
            views = warp(x[:, :, None], T)[..., 0, :]
        if self.names[-1] == "amplitude":
            views = views * torch.exp(eps[..., -1] * eta[-1])[..., None, None]
        return views
