r"""Whether labels are kept along a width, by the network itself.

f_hat is an average over views. Where the logits are linear in an angle, averaging over turns to either side changes
nothing: digits whose label is the angle that they were turned by are then learned with widths of 20 to 60 degrees, and
the evidence is content. Single views tell: those of a kept label are classified as their average is, the others not.

    kept = (share of views, along this width alone, that are right) / (share of their averages that are right)

A verdict of "invariant" asks for `KEPT` of them. Of numbers, R^2 takes the place of the share that is right.
"""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from augury.core.rng import generator
from augury.core.units import WidthSpec
from augury.curvature.tape import rows_per_pass
from augury.evidence.refit import LaplaceRefit, NtkRefit
from augury.models.batchnorm import evaluating

KEPT = 0.9
"""Least share of labels kept: where labels were the angle it was .68 to .87 and .95, elsewhere .91 to 1."""
CHANGED = (
    "{name} is not called invariant: of what averages over it get right, single views get only {kept:.0%} (at least "
    "{least:.0%} are asked), so labels do not stay the same along it. A narrower width may be invariant."
)
"""Said where the labels change along a width that the evidence supports."""


@torch.no_grad()
def kept(refit: LaplaceRefit | NtkRefit, spec: WidthSpec) -> float:
    """Return the share of labels that views along one width keep, the other widths at 0; 1 where nothing is right."""
    model, transform, S = refit.model, refit.model.transform, refit.views
    at = transform.describe()
    none = {other.name: other.unit.to_person(0.0) for other in transform.specs}
    transform.set_widths({**none, spec.name: at[spec.name]})
    rows = max(1, rows_per_pass(model.net, refit.x[:1]) // S)
    with evaluating(model.net, refit.evidence.settings.batchnorm):
        f = [model.net(model.views(x, generator(refit.seed, x.device), S)) for x in refit.x.split(rows)]
    transform.set_widths(at)
    of_views = torch.cat(f).unflatten(0, (-1, S))
    single, averaged = right(of_views, refit.y), right(of_views.mean(1, keepdim=True), refit.y)
    return single / averaged if averaged > 0 else 1.0


def right(f: Float[Tensor, "N S C"], y: Shaped[Tensor, "N ..."]) -> float:
    """Return the share of views that are right; of numbers, R^2."""
    if y.is_floating_point():
        return 1 - float((f - y[:, None]).square().mean() / (y - y.mean(0)).square().mean())
    return float((f.argmax(-1) == y[:, None]).double().mean())
