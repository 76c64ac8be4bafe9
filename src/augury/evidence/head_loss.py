"""The training loss of a linear head at its optimum, as a function of the features (paper C, Eq. 3).

    min_phi  sum_n L(phi, z_n, y_n) + ridge/2 |phi|^2

A small ridge, because separable classes have no optimum without; the loss is cross-entropy, or half the squared error
of standardised targets. At the optimum the derivative in the features is that of the loss alone (envelope theorem).
"""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float, Shaped
from torch import Tensor

from augury.evidence.head import Warm, along, standard
from augury.evidence.head_basis import basis, normalised
from augury.evidence.head_softmax import problem


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss of the best head on features."""

    value: Float[Tensor, ""]
    """Minus the loss, summed over examples, the ridge's share included; differentiable in the features."""
    warm: Warm | None
    """Where to begin next time."""
    slope: Callable[[], Float[Tensor, "N d"]]
    """Works out the derivative in the normalised features."""


def fit_loss(
    features: Float[Tensor, "N d"],
    y: Shaped[Tensor, "N ..."],
    n_outputs: int,
    *,
    ridge: float,
    warm: Warm | None = None,
    tolerance: float = 1e-2,
) -> Loss:
    """Solve the head and return its loss."""
    space = normalised(features)
    again = None
    if y.is_floating_point():
        rotated = basis(space.Z)
        centre, scale = standard(y.double())
        targets = (y.double() - centre) / scale
        W = (targets.T @ rotated.Z) / (rotated.a + ridge)
        E = targets - rotated.Z @ W.T
        value = -(E.square().sum() + ridge * W.square().sum()) / 2
    else:
        rotated = basis(space.Z, space.Z.dtype)
        head = problem(rotated, y, n_outputs, ridge)
        zero = head.Z.new_zeros(n_outputs, head.Z.shape[1])
        Theta = head.solve(zero if warm is None else warm.alpha.T @ head.Z, tolerance)
        E, W = head.Y - head.probabilities(Theta), Theta[:, :-1]
        value, again = head.value(Theta), Warm(ridge, E / ridge)

    def slope() -> Tensor:
        return rotated.lift(E @ W)

    if space.Z.requires_grad:
        value = value + along(space.Z, slope())
    return Loss(value, again, slope)
