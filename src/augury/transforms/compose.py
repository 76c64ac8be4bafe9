"""Several transformations one after the other, as one."""

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
        How the joint noise is drawn; the way of the parts, where they agree, unless told.
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
        """Pass every input through all parts, S times.

        Parameters
        ----------
        x
            A batch of inputs.
        eps
            The parts' noise, side by side.

        Returns
        -------
        Tensor
            The views.
        """
        B, S = eps.shape[:2]
        first, *others = self._parts()
        eps_first, *eps_others = eps.split([part.noise_dim for part in self._parts()], dim=-1)
        views = first.act(x, eps_first)
        for part, noise in zip(others, eps_others, strict=True):
            views = part.act(views.flatten(0, 1), noise.reshape(B * S, 1, -1)).unflatten(0, (B, S)).squeeze(2)
        return views

    def check(self, x: Tensor) -> None:
        """Raise unless every part takes `x`.

        Parameters
        ----------
        x
            A batch of inputs.
        """
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
        raise InputError(
            f"the parts of a composition must act on one kind of data; got {' and '.join(kinds)}."
        )
    names = [name for part in parts for name in part.names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"every width of a composition must have a name of its own; '{twice[0]}' comes twice. "
            f"Leave one of the two parts out, or give one of them fewer generators."
        )
