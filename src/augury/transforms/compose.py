"""Transformations made of others: one after the other, with correlated widths, or none at all.

`Correlated` (beyond the papers): with one width per generator, data scaled by one factor along both axes is explained
by two independent scales, which paper A (section 5.4) names as a failure: the joint scale is one direction of the
plane that they span. So mix the noise by a lower-triangular L before it meets the generators,

    T = exp(sum_k (L eps)_k G_k),    eta_k = |L_k| (norm of row k),    correlation = L L^T / (eta eta^T).

Var((L eps)_k) = eta_k^2 / 3 as for independent widths, which are the diagonal L. Two rows that are parallel
are one generator: scale_x and scale_y with correlation 1 are the joint scale (with a single known direction,
such as `Affine2d(..., "scale_joint")`, the one number is enough). A mixed coefficient may reach the sum of
its row, up to sqrt(K) times eta_k.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.transforms.base import Transform


class Compose(Transform):
    """The first transformation, then the second on its views, and so on: one view in, one view out, S times.

    Its widths are those of its parts, side by side. The parts hold the parameters; `eta` is a fresh view of
    them, so train `parameters()`, not `eta`.

    Parameters
    ----------
    parts
        Transformations of one kind, first to act first; no two widths may share a name.
    sampling
        How the joint noise is drawn. Default: as the parts do, which must agree.
    """

    def __init__(self, parts: Sequence[Transform], sampling: str | None = None) -> None:
        parts = list(parts)
        _check_parts(parts)
        ways = sorted({part.sampling for part in parts})
        if sampling is None and len(ways) > 1:
            raise InputError(
                f"the parts of a composition must draw their noise in one way; got {' and '.join(ways)}. "
                f"Say which: Compose(parts, sampling='{ways[0]}')."
            )
        specs = [spec for part in parts for spec in part.specs]
        super().__init__(specs, sampling or ways[0], noise_dim=sum(part.noise_dim for part in parts))
        self.kind = parts[0].kind
        self.parts = nn.ModuleList(parts)

    def _make_eta(self) -> None:
        """Make nothing: the parts hold the widths."""

    @property
    def eta(self) -> Float[Tensor, " K"]:  # type: ignore[override]
        """The parts' widths, side by side."""
        return torch.cat([part.eta for part in self._parts()])

    def _parts(self) -> list[Transform]:
        return list(self.parts)  # type: ignore[arg-type]

    def act(self, x: Float[Tensor, "B ..."], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S ..."]:
        """Pass every input through all parts, S times."""
        B, S = eps.shape[:2]
        first, *others = self._parts()
        eps_first, *eps_others = eps.split([part.noise_dim for part in self._parts()], dim=-1)
        views = first.act(x, eps_first)
        for part, noise in zip(others, eps_others, strict=True):
            views = part.act(views.flatten(0, 1), noise.reshape(B * S, 1, -1)).unflatten(0, (B, S)).squeeze(2)
        return views

    def check(self, x: Tensor) -> None:
        """Raise unless every part takes `x`."""
        for part in self._parts():
            part.check(x)

    def _set_eta(self, k: int, value: float) -> None:
        for part in self._parts():
            if k < len(part.specs):
                part._set_eta(k, value)
                return
            k -= len(part.specs)

    @torch.no_grad()
    def project_(self) -> None:
        """Bring every part's widths back to where they mean something."""
        for part in self._parts():
            part.project_()


def _check_parts(parts: list[Transform]) -> None:
    if not parts:
        raise InputError("a composition must have at least one part; got none.")
    kinds = sorted({part.kind for part in parts})
    if len(kinds) > 1:
        raise InputError(f"the parts of a composition must act on one kind of data; got {' and '.join(kinds)}.")
    names = [name for part in parts for name in part.names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"every width of a composition must have a name of its own; '{twice[0]}' comes twice. "
            f"Leave one of the two parts out, or give one of them fewer generators."
        )


class Correlated(Transform):
    """A transformation whose widths may be correlated; it learns L, starting from the given widths.

    Parameters
    ----------
    transform
        A transformation that is a function of the products eps_k eta_k (so none in `Transform.one_way`). It
        is taken over: its own widths become 1.
    """

    def __init__(self, transform: Transform) -> None:
        owned = [name for name, _ in transform.named_parameters()]
        if transform.one_way or owned != ["eta"]:
            what = f"{', '.join(transform.one_way)}, which have one" if transform.one_way else "a composition"
            raise InputError(
                f"Correlated takes one transformation whose widths have two directions; got {what}. "
                f"Correlate the others, and compose."
            )
        super().__init__(transform.specs, transform.sampling)
        self.kind = transform.kind
        self.transform = transform
        self.L = nn.Parameter(torch.diag(transform.eta.detach()))
        transform.eta.requires_grad_(False).fill_(1.0)

    def _make_eta(self) -> None:
        """Make nothing: L holds the widths."""

    def factor(self) -> Float[Tensor, "K K"]:
        """Return L with its upper triangle at 0.

        Returns
        -------
        Tensor
            The factor that mixes the noise.
        """
        return self.L.tril()

    @property
    def eta(self) -> Float[Tensor, " K"]:  # type: ignore[override]
        """The norms of the rows of L; their gradient is 0 where a row is 0."""
        squares = (self.factor() ** 2).sum(1)
        return torch.where(squares > 0, torch.where(squares > 0, squares, 1.0).sqrt(), 0.0)

    @torch.no_grad()
    def correlation(self) -> Float[Tensor, "K K"]:
        """Return how far the generators move together.

        Returns
        -------
        Tensor
            Correlations between -1 and 1; 0 beside a width of 0.
        """
        rows = nn.functional.normalize(self.factor(), dim=1)
        return rows @ rows.mT

    def act(self, x: Float[Tensor, "B ..."], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S ..."]:
        """Transform every input S times, by mixed noise."""
        return self.transform.act(x, eps @ self.factor().to(eps).mT)

    def check(self, x: Tensor) -> None:
        """Raise unless the inner transformation takes `x`."""
        self.transform.check(x)

    def _set_eta(self, k: int, value: float) -> None:
        row = self.factor()[k]
        if row.norm() == 0:
            row[k] = 1.0
        self.L[k] = row * (value / row.norm())

    @torch.no_grad()
    def project_(self) -> None:
        """Shrink the rows that are longer than their bound."""
        upper = self.L.new_tensor([spec.upper for spec in self.specs])
        self.L.mul_((upper / self.eta.clamp(min=1e-12)).clamp(max=1.0)[:, None])


class Identity(Transform):
    """No width and no noise; takes inputs of any kind."""

    kind = "any"

    def __init__(self) -> None:
        super().__init__([])

    def check(self, x: Tensor) -> None:
        """Accept everything."""

    def act(self, x: Float[Tensor, "B ..."], eps: Float[Tensor, "B S K"]) -> Float[Tensor, "B S ..."]:
        """Return S views of every input, all equal to it, without a copy."""
        return x[:, None].expand(-1, eps.shape[1], *x.shape[1:])
