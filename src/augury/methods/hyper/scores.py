r"""Scores of an adapted model: on a set, an estimate from the training examples, and the loss of the bound.

    accuracy   share of correct predictions; held out: parts are predicted by heads fitted to the other parts, with the
               same prior precision
    R^2        1 - squared error / squared distance from the mean, averaged over the targets; held out: every
               example by the head of all others, in closed form: residual / (1 - leverage)

The descriptor has seen all of the examples; with a few numbers chosen from hundreds of examples that matters little.

Theorem 3.1 (paper C) asks for a 1-Lipschitz loss, and its last term (McDiarmid) for one between 0 and 1. We take

    classification   ramp = clamp(1 - (f_y - max_{c != y} f_c) / sqrt(2), 0, 1)     1 for a wrong prediction,
    regression       clamp(|f - y|, 0, 1)                                            on standardised targets,

both 1-Lipschitz in the outputs (a difference of two logits has a gradient of norm sqrt 2). So the bound on the ramp
loss also bounds the error rate. As in the paper, X and B are those of the data and the head at hand, and
the middle term is that of a single output: for C outputs it would be sqrt(2 C) times as large (Maurer, 2016).
"""

import math

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from augury.evidence.head import Head, standard
from augury.evidence.head_softmax import Basis, Softmax, basis, normalised, problem


def score(outputs: Float[Tensor, "N C"], y: Shaped[Tensor, "N ..."]) -> float:
    """Return accuracy or R^2."""
    if not y.is_floating_point():
        return float((outputs.argmax(1) == y).double().mean())
    outputs, y = outputs.double(), y.double()
    total = (y - y.mean(0)).square().sum(0)
    moving = total > 0
    return float(1 - ((outputs - y).square().sum(0)[moving] / total[moving]).mean())


def bounded_loss(outputs: Float[Tensor, "N C"], y: Shaped[Tensor, "N ..."]) -> Float[Tensor, " N"]:
    if y.is_floating_point():
        return (outputs - y).norm(dim=1).clamp(0, 1)
    own = outputs.gather(1, y[:, None])[:, 0]
    others = outputs.scatter(1, y[:, None], -math.inf).amax(1)
    return (1 - (own - others) / math.sqrt(2)).clamp(0, 1)


@torch.no_grad()
def held_out(
    features: Float[Tensor, "N d"], y: Shaped[Tensor, "N ..."], head: Head, folds: int, rng: torch.Generator
) -> float:
    """Estimate accuracy or R^2 on new examples."""
    rotated = basis(normalised(features).Z)
    if y.is_floating_point():
        assert head.sigma2 is not None
        return _leave_one_out(rotated, y.double(), head.delta * head.sigma2)
    return _by_parts(problem(rotated, y, len(head.weight), head.delta), y, folds, rng)


def _leave_one_out(rotated: Basis, y: Float[Tensor, "N C"], lam: float) -> float:
    centre, scale = standard(y)
    y = (y - centre) / scale
    residual = y - rotated.Z @ ((rotated.Z.T @ y) / (rotated.a + lam)[:, None])
    leverage = 1 / len(y) + (rotated.Z.square() / (rotated.a + lam)).sum(1)
    return score(y - residual / (1 - leverage).clamp_min(1e-9)[:, None], y)


def _by_parts(whole: Softmax, y: Int[Tensor, " N"], folds: int, rng: torch.Generator) -> float:
    order = torch.randperm(len(y), generator=rng).to(y.device)
    start = whole.solve(whole.Z.new_zeros(whole.Y.shape[1], whole.Z.shape[1]), tolerance=1.0)
    right = 0
    for part in order.tensor_split(min(folds, len(y))):
        keep = torch.ones_like(y, dtype=torch.bool)
        keep[part] = False
        head = Softmax(whole.Z[keep], whole.Y[keep], whole.tau, whole.a)
        logits = whole.Z[part] @ head.solve(start, tolerance=0.1).T
        right += int((logits.argmax(1) == y[part]).sum())
    return right / len(y)
