"""Run one cell of paper D: train, watch the spectrum, audit on the test set and under drift, keep saliency maps."""

from typing import TYPE_CHECKING, Any

from papers.cell import Cell, Result
from papers.genuine.settings import DIGITS, METHODS, OTHER, group_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from augury.data.dataset import Dataset
    from augury.records.results import Audit
    from augury.transforms.finite_groups import FiniteGroup

TRACED = 100
"""Test images at which the Jacobian is watched during training."""
SHOWN = 2
"""Images whose saliency maps are kept, for the first seed only: they are large."""
VIEWS = 4
"""Views of each of them, the image itself among them."""
LEVELS = 99
"""A map is kept as whole numbers up to this, relative to its own largest value."""


def run(cell: Cell, device: str = "cpu") -> Result:
    """Run one cell from start to end."""
    from augury.auditing.audit import audit
    from augury.auditing.spectrum import SpectrumTrace
    from augury.methods.learn import learn
    from augury.transforms.vocabulary import build
    from papers.run import read_data, result_of

    data = read_data(cell.data, cell.variant, cell.subset, cell.test_images, cell.seed)
    group: Any = build([group_of(cell)], data.kind, data.input_shape)
    net = _network(cell, data, group, device)
    trace = SpectrumTrace(net, data.x_test[:TRACED].to(device))
    settings = {"device": device, **cell.settings, "generators": tuple(cell.settings["generators"])}
    found = learn(data, net, cell.algorithm, callbacks=trace, **settings, seed=cell.seed)
    model = found.model.cpu()
    drift = {name: name for name in [OTHER.get(cell.data)] if name is not None}
    report = audit(model, data, group, drift=drift, worst=0)
    drawn = cell.seed == 0 and cell.data in DIGITS and cell.algorithm in METHODS
    maps = saliency_maps(model, data.x_test[:SHOWN], group) if drawn else None
    measured = {"audit": _kept(report), "spectrum": _columns(trace.rows), "maps": maps}
    return result_of(cell, data, found, nu=found.metrics[-1].get("nu"), **measured)


def _network(cell: Cell, data: "Dataset", group: "FiniteGroup", device: str) -> "nn.Module":
    """Return the network that will be trained, tied already where it shall be, so that it can be watched."""
    from augury.models.networks import build
    from augury.models.weight_tied import tie
    from augury.training.batches import streams

    net = build(cell.model, data.input_shape, data.n_outputs, streams(cell.seed)["network"])
    return (tie(net, group) if cell.algorithm == "weight_tied" else net).to(device)


def _kept(report: "Audit") -> dict[str, Any]:
    """Return the audit without what no table shows."""
    values = report.to_json()
    for name in ("per_class", "curve", "worst", "model", "data", "advice"):
        del values[name]
    return values


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Turn lines of a trace into columns; of the weights, the first matrix and the largest of all."""
    weights = [list(row["sigma_max_weights"].values()) for row in rows]
    return {
        "epoch": [row["epoch"] for row in rows],
        "jacobian": [round(row["sigma_max_jacobian"], 5) for row in rows],
        "relative": [row["sigma_max_relative"] for row in rows],
        "first_weight": [round(values[0], 5) for values in weights],
        "largest_weight": [round(max(values), 5) for values in weights],
    }


def saliency_maps(model: "nn.Module", x: "Tensor", group: "FiniteGroup") -> list[dict[str, Any]]:
    """Return images, their first views, and the saliency map of each, moved back to the frame of the image."""
    import torch

    from augury.auditing.measures import compare
    from augury.auditing.orbits import Elements

    elements = tuple(range(min(VIEWS, group.order)))
    seen = compare(model, x, Elements(group, elements).apply, len(elements))
    assert seen.m_g is not None and seen.SI is not None

    def whole(pictures: torch.Tensor) -> Any:
        flat = pictures.sum(1)  # over channels
        return (LEVELS * flat / flat.abs().amax((1, 2), keepdim=True).clamp(min=1e-30)).round().int().tolist()

    triples = zip(seen.views, seen.m_g, seen.SI, strict=True)
    return [
        {"views": whole(v), "maps": whole(m), "SI": [round(s, 4) for s in SI.tolist()]}
        for v, m, SI in triples
    ]
