r"""Whether labels are kept along a width, by the network itself.

f_hat is an average over views. Where the logits are linear in an angle, averaging over turns to either side changes
nothing: digits whose label is the angle that they were turned by are then learned with widths of 20 to 60 degrees, and
the evidence is content. Single views tell: those of a kept label are classified as their average is, the others not.

    kept = (share of views, along this width alone, that are right) / (share of their averages that are right)

A verdict of "invariant" asks for `KEPT` of them. Of numbers, R^2 takes the place of the share that is right.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.core.rng import generator
from augury.core.units import WidthSpec
from augury.curvature.tape import last_layer, rows_per_pass
from augury.data.rows import taken
from augury.evidence.ascent import AnyEvidence, NtkEvidence
from augury.models.batchnorm import evaluating
from augury.models.orbit import OrbitAverage
from augury.training.batches import Batches
from augury.training.learner import Findings

MOST, VIEWS = 300, 16  # data, and views of each
KEPT = 0.9
"""Least share of labels kept: where labels were the angle it was .68 to .87 and .95, elsewhere .91 to 1."""
CHANGED = (
    "{name} is not called invariant: of what averages over it get right, single views get only {kept:.0%} (at least "
    "{least:.0%} are asked), so labels do not stay the same along it. A narrower width may be invariant."
)
"""Said where the labels change along a width that the evidence supports."""


def confirmed(found: Findings, evidence: AnyEvidence, batches: Batches) -> Findings:
    """Return findings without the verdict "invariant" on widths along which the labels of a trained network change."""
    pick = torch.linspace(0, batches.N - 1, min(MOST, batches.N)).long()
    x, y = taken(batches.x, pick)[:].to(batches.device), batches.y[pick].to(batches.device)
    model, widths, notes = evidence.model, dict(found.widths), []
    with torch.no_grad(), evaluating(model.net, evidence.settings.batchnorm):
        judged = isinstance(evidence, NtkEvidence) or below_is_trained(model.net, x[:1])
        for spec in model.transform.specs if judged else ():
            if widths[spec.name].verdict == "invariant" and (share := kept(model, x, y, spec)) < KEPT:
                widths[spec.name] = replace(widths[spec.name], verdict="undecided")
                notes.append(CHANGED.format(name=spec.name, kept=share, least=KEPT))
    return replace(found, widths=widths, notes=(*found.notes, *notes))


def below_is_trained(net: nn.Module, x: Tensor) -> bool:
    """Return whether any layer but the last is trained: single views of features that are fixed need mean nothing."""
    last = last_layer(net, x)
    return any(p.requires_grad for name, p in net.named_parameters() if name.rpartition(".")[0] != last)


def kept(model: OrbitAverage, x: Tensor, y: Shaped[Tensor, "N ..."], spec: WidthSpec) -> float:
    """Return the share of labels that views along one width keep, the other widths at 0; 1 where nothing is right."""
    transform, at = model.transform, model.transform.describe()
    none = {other.name: other.unit.to_person(0.0) for other in transform.specs}
    transform.set_widths({**none, spec.name: at[spec.name]})
    rows = max(1, rows_per_pass(model.net, x[:1]) // VIEWS)
    try:
        f = [model.net(model.views(part, generator(k, x.device), VIEWS)) for k, part in enumerate(x.split(rows))]
    finally:
        transform.set_widths(at)
    of_views = torch.cat(f).unflatten(0, (-1, VIEWS))
    single, averaged = right(of_views, y), right(of_views.mean(1, keepdim=True), y)
    return single / averaged if averaged > 0 else 1.0


def right(f: Float[Tensor, "N S C"], y: Shaped[Tensor, "N ..."]) -> float:
    """Return the share of views that are right; of numbers, R^2."""
    if y.is_floating_point():
        return 1 - float((f - y[:, None]).square().mean() / (y - y.mean(0)).square().mean())
    return float((f.argmax(-1) == y[:, None]).double().mean())
