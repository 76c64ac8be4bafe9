"""The base of all transformations: a list of widths, noise eps uniform on [-1, 1]^K, and how it acts on inputs.

    eps   = transform.noise(B, S, rng)      # the only random line
    views = transform.act(x, eps)           # [B, ...] -> [B, S, ...], differentiable in eta

A transformation of your own needs the list of its widths and `act`:

    class Gain(Transform):
        kind = "signal"

        def __init__(self):
            super().__init__([WidthSpec("gain", FACTOR)])

        def act(self, x, eps):
            factor = (eps[..., 0] * self.eta[0]).exp()
            return x[:, None] * factor[..., None, None]

The noise is drawn in one of four ways. `independent` is the papers'. `stratified` cuts [-1, 1] into S cells and
visits each cell once per image and dimension (a Latin hypercube): every draw is still uniform, so the orbit average
stays unbiased, and its variance falls. `centred` takes the middle of each cell: the midpoint rule in one dimension,
without noise, and nearly without error where the network is smooth along the orbit. `grid` is paper B's deterministic
surrogate: equally spaced points of the cube, for small K.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError, choose
from augury.core.rng import rows
from augury.core.units import WidthSpec

KINDS = {
    "image": "images [B, C, H, W]",
    "signal": "signals [B, C, T]",
    "points": "point clouds [B, P, 3]",
    "coordinates": "coordinates [B, 2]",
}
"""What a transformation can act on, and the shape of a batch of it."""

KIND_OF_NDIM = {4: ("image",), 3: ("signal", "points"), 2: ("coordinates",)}


class Transform(nn.Module, ABC):
    """A distribution over transformations g(x, eps; eta), reparameterised by eps uniform on [-1, 1]^K.

    Parameters
    ----------
    specs
        Name, unit and bound of every width, in the order of `eta`.
    sampling
        How eps is drawn: "independent", "stratified", "centred" or "grid".
    noise_dim
        Dimensions of eps. Default: one per width.
    """

    kind: str
    """A key of `KINDS`; subclasses set it."""

    one_way: tuple[str, ...] = ()
    """Names of the widths that have one direction (a chance, a blur): |eps eta| acts, not eps eta."""

    def __init__(self, specs: Sequence[WidthSpec], sampling: str = "independent", noise_dim: int | None = None) -> None:
        super().__init__()
        self.specs = tuple(specs)
        self.sampling = choose("sampling", sampling, SAMPLINGS)
        self.noise_dim = len(self.specs) if noise_dim is None else noise_dim
        self._make_eta()

    def _make_eta(self) -> None:
        self.eta = nn.Parameter(torch.zeros(len(self.specs)))

    @abstractmethod
    def act(self, x: Float[Tensor, "B ..."], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S ..."]:
        """Transform every input S times, once for each row of its noise.

        Parameters
        ----------
        x
            A batch of inputs.
        eps
            Noise for each input and sample.

        Returns
        -------
        Tensor
            The views g(x, eps; eta).
        """

    def noise(self, B: int, S: int, rng: torch.Generator) -> Float[Tensor, "{B} {S} K"]:
        """Draw the noise of B inputs, S samples each.

        Parameters
        ----------
        B, S
            Inputs, and samples for each.
        rng
            Where the draws come from; a grid does not touch it.

        Returns
        -------
        Tensor
            eps.
        """
        K = self.noise_dim
        if self.sampling == "grid":
            return grid(S, K).to(rng.device).expand(B, S, K)
        if self.sampling == "independent":
            return independent(B, S, K, rng)
        return stratified(B, S, K, rng, centred=self.sampling == "centred")

    def forward(self, x: Float[Tensor, "B ..."], S: int, rng: torch.Generator) -> Float[Tensor, "B {S} ..."]:
        """Return S views of every input.

        Parameters
        ----------
        x
            A batch of inputs of this transformation's kind.
        S
            Views for each.
        rng
            Where the draws come from.

        Returns
        -------
        Tensor
            The views.
        """
        self.check(x)
        with torch.autocast(x.device.type, enabled=False):  # bf16 would move pixels by a tenth of a pixel
            return self.act(x, rows(lambda B: self.noise(B, S, rng), len(x), rng).to(x))

    def check(self, x: Tensor) -> None:
        """Raise unless `x` has the shape that this transformation acts on.

        Parameters
        ----------
        x
            A batch of inputs.
        """
        fits = self.kind in KIND_OF_NDIM.get(x.ndim, ())
        if self.kind == "points":
            fits = fits and x.shape[-1] == 3
        if self.kind == "coordinates":
            fits = fits and x.shape[-1] == 2
        if not fits:
            raise InputError(
                f"{type(self).__name__} acts on {KINDS[self.kind]}; got a batch of shape {list(x.shape)}. "
                f"Choose a transformation for your data, or reshape it."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the widths, in the order of `eta`."""
        return tuple(spec.name for spec in self.specs)

    def describe(self) -> dict[str, float]:
        """Return every width in its unit: degrees, pixels, a factor.

        Returns
        -------
        dict
            The value of each width in its unit, by name.
        """
        pairs = list(zip(self.specs, self.eta.detach().abs().tolist(), strict=True))
        at_bound = {s.name for s, v in pairs if math.isclose(v, s.upper, rel_tol=1e-6)}  # pi is not a float32
        return {s.name: s.unit.to_person(s.upper if s.name in at_bound else v) for s, v in pairs}

    @torch.no_grad()
    def set_widths(self, values: Mapping[str, float | int]) -> None:
        """Set widths given in their units; those not named keep their value.

        Parameters
        ----------
        values
            Width in its unit, by name.
        """
        for name, value in values.items():
            k = self.names.index(choose("generator", name, self.names))
            spec = self.specs[k]
            smallest = spec.unit.to_person(0.0)
            if not value >= smallest:
                raise InputError(
                    f"width {name} must be at least {smallest:g} {spec.unit.symbol} (no transformation); "
                    f"got {value}. A width is how far to go either way, so it has no sign."
                )
            eta = spec.unit.from_person(float(value))
            if eta > spec.upper * (1 + 1e-6):
                raise InputError(
                    f"width {name} must be at most {spec.unit.to_person(spec.upper):g} {spec.unit.symbol}; "
                    f"got {value}. Beyond that it means nothing new."
                )
            self._set_eta(k, min(eta, spec.upper))

    def _set_eta(self, k: int, value: float) -> None:
        self.eta[k] = value

    @torch.no_grad()
    def project_(self) -> None:
        """Bring every width back to [-upper, upper] after an optimiser's step, so that none diverges."""
        upper = self.eta.new_tensor([spec.upper for spec in self.specs])
        self.eta.copy_(self.eta.clamp(-upper, upper))


def magnitude(eta: Float[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """Return |eta| with slope +1 at 0, where torch's own is 0 and a width that starts at 0 would never leave.

    For the widths in `Transform.one_way`; the others are symmetric in eps.
    """
    return torch.where(eta >= 0, eta, -eta)


SAMPLINGS = ("independent", "stratified", "centred", "grid")


def independent(B: int, S: int, K: int, rng: torch.Generator) -> Float[Tensor, "{B} {S} {K}"]:
    """Draw eps independently for every image, sample and dimension."""
    return torch.rand(B, S, K, generator=rng, device=rng.device) * 2 - 1


def stratified(B: int, S: int, K: int, rng: torch.Generator, centred: bool = False) -> Float[Tensor, "{B} {S} {K}"]:
    """Draw eps so that each of S equal cells holds one sample (or its middle) of every image, by dimension."""
    cell = torch.rand(B, S, K, generator=rng, device=rng.device).argsort(dim=1)
    within = 0.5 if centred else torch.rand(B, S, K, generator=rng, device=rng.device)
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
