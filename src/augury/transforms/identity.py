"""The distribution that does nothing: what a network without invariance is averaged over."""

from jaxtyping import Float
from torch import Tensor

from augury.transforms.base import Transform


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
