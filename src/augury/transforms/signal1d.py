"""Shifts, stretches, gains and the mirror of signals [B, C, T], with learnable widths.

Time is the x axis of an image one pixel high, so shift and stretch are the affine maps of `affine_matrices`
(T = exp of the sum of two generators) and the sampling is that of `warp`: linear, zero outside.

    view(t) = exp(eps_a eta_a) x(T t)

A closed signal, such as an outline, has no start: it is shifted on a circle, by the phases of its Fourier series. Whole
shifts permute the samples; others keep every frequency (interpolation would blur them, which gives the shift away).
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError, choose
from augury.transforms.affine_matrices import GENERATORS, G, affine_matrices
from augury.transforms.base import Transform
from augury.transforms.finite_groups import FiniteGroup
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
        self, length: int, generators: Sequence[str] = tuple(SIGNAL_GENERATORS), sampling: str = "independent"
    ) -> None:
        wanted = [choose("generator", name, SIGNAL_GENERATORS) for name in generators]
        if not wanted:
            raise InputError(f"generators must name at least one of {', '.join(SIGNAL_GENERATORS)}; got none.")
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


class CircularShift(Transform):
    """Random shifts of closed signals, up to half the length either way: every start is then equally likely."""

    kind = "signal"

    def __init__(self, length: int, sampling: str = "independent") -> None:
        super().__init__([SIGNAL["circular_shift"].spec("circular_shift", length)], sampling)

    def act(self, x: Float[Tensor, "B C T"], eps: Float[Tensor, "B S 1"]) -> Float[Tensor, "B S C T"]:
        """Return x(t + s), s = eps eta T / 2, S times; a turn by 2 pi is the whole length."""
        T = x.shape[-1]
        turn = math.pi * eps * self.eta.to(eps) * torch.arange(T // 2 + 1, dtype=x.dtype, device=x.device)
        phases = torch.complex(turn.cos(), turn.sin())[:, :, None]
        return torch.fft.irfft(torch.fft.rfft(x)[:, None] * phases, n=T)


class Mirror(FiniteGroup):
    """The reversal of signals, as a group of two elements."""

    kind = "signal"

    def __init__(self, relaxation: str = "soft", temperature: float = 0.2, sampling: str = "independent") -> None:
        super().__init__("mirror", 2, True, relaxation, temperature, sampling)

    def inverse_of(self, j: int) -> int:
        """Return j: a mirror undoes itself."""
        return j

    def element(self, x: Float[Tensor, "B C T"], j: int) -> Float[Tensor, "B C T"]:
        """Leave the signals (0) or reverse them (1)."""
        return x.flip(-1) if j else x
