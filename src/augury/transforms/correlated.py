r"""Correlated widths: generators that move together (beyond the papers).

With one width per generator, data scaled by one factor along both axes is explained by two independent
scales, which paper A (section 5.4) names as a failure: the joint scale is one direction of the plane that
they span. So mix the noise by a lower-triangular L before it meets the generators,

    T = exp(sum_k (L eps)_k G_k),    eta_k = |L_k| (norm of row k),    correlation = L L^T / (eta eta^T).

Var((L eps)_k) = eta_k^2 / 3 as for independent widths, which are the diagonal L. Two rows that are parallel
are one generator: scale_x and scale_y with correlation 1 are the joint scale (with a single known direction,
such as `Affine2d(..., "scale_joint")`, the one number is enough). A mixed coefficient may reach the sum of
its row, up to sqrt(K) times eta_k.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.transforms.base import Transform


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
        """Transform every input S times, by mixed noise.

        Parameters
        ----------
        x
            A batch of inputs.
        eps
            Noise before mixing.

        Returns
        -------
        Tensor
            The views.
        """
        return self.transform.act(x, eps @ self.factor().to(eps).mT)

    def check(self, x: Tensor) -> None:
        """Raise unless the inner transformation takes `x`.

        Parameters
        ----------
        x
            A batch of inputs.
        """
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
