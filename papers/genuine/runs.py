"""The runs behind paper D's table and figures: their grid, how one is run, and how the items read a result.

`paper` trains for the paper's 300 epochs; `small` for 20, and the regularised network for 60 too: its nu grows while it
trains, and T^2_3 needs a large one; `quick` only shows that everything works. All take Adam 8e-4, batches of 512 and
the five-layer MLP (the defaults of the three methods). Each run trains, traces the spectrum, audits on the test set and
under drift, and keeps saliency maps. Torch is loaded inside the functions.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from augury.records.results import Audit, Scores
from papers.learning import data_of, digits, result_of
from papers.recipes import complete
from papers.results import ORIGINAL, Cell, Result

if TYPE_CHECKING:
    from torch import Tensor, nn

    from augury.transforms.finite_groups import FiniteGroup

GROUPS = ("C4", "T3")
"""R^2_4, the quarter turns, and T^2_3, shifts by thirds on a torus."""
METHODS = {"weight_tied": "WT", "data_augmented": "DA", "regularised": "IR"}
"""Our name of each method, and the paper's."""
DIGITS = ("mnist", "mnist5k")
"""The data of the table and the figures: the complete set, and what ships."""

EPOCHS = {"quick": 2, "small": 20, "paper": 300}
LONGER = {"quick": 1, "small": 3, "paper": 1}
"""How many times as long the regularised network trains a second time."""
LONG = "/long"
"""How the method ends of a run with the paper's epochs at a smaller scale."""
IMAGES = {"quick": 200, "small": None, "paper": None}
TEST_IMAGES = {"quick": 60, "small": None, "paper": None}
QUICK = {"batch": 50}

OTHER = {"mnist": "fashion_mnist", "fashion_mnist": "mnist", "kmnist10k": "fashion_mnist"}
"""The second data set of the drift; data not named here have corrupted copies only."""

TRACED = 100
"""Test images at which the Jacobian is traced during training."""
SHOWN = 2
"""Images whose saliency maps are kept, for the first seed only: they are large."""
VIEWS = 4
"""Views of each of them, the image itself among them."""
LEVELS = 99
"""A map is kept as whole numbers up to this, relative to its own largest value."""


def cells(scale: str, seeds: Sequence[int], data: str, methods: Sequence[str]) -> list[Cell]:
    """Return the runs on a data set, seed by seed."""
    return [
        Cell(data, ORIGINAL, "mlp5", f"{method}/{group}", seed, settings, IMAGES[scale], TEST_IMAGES[scale])
        for seed in seeds
        for group in GROUPS
        for method in methods
        for epochs in lengths(scale, method)
        if (settings := {"epochs": epochs, "generators": [group], **(QUICK if scale == "quick" else {})})
    ]


def lengths(scale: str, method: str) -> tuple[int, ...]:
    """Return for how many epochs a method trains: those of all, and a longer run of the regularised network."""
    epochs = EPOCHS[scale]
    return (epochs, LONGER[scale] * epochs) if method == "regularised" and LONGER[scale] > 1 else (epochs,)


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    return cells(scale, seeds, digits(scale), list(METHODS))


def group_of(cell: Cell) -> str:
    return str(cell.settings["generators"][0])


def label(cell: Cell) -> str:
    """Return the paper's name of a method."""
    name = METHODS.get(cell.algorithm, cell.algorithm)
    long = cell.algorithm == "regularised" or cell.method.endswith(LONG)
    return f"{name} {cell.settings['epochs']}" if long else name


def by_row(cell: Cell) -> tuple[str, ...]:
    """Return what the seeds of one row of a table have in common: data, group, method and its name."""
    return cell.data, group_of(cell), cell.algorithm, label(cell)


def audit_of(result: Result) -> Audit:
    return Audit.from_json(result.extra["audit"])


def sets_of(result: Result) -> dict[str, Scores]:
    """Return the measures on the test set, on its corrupted copies and on other data."""
    found = audit_of(result)
    return {"test": found.scores, **found.drift}


def value(measure: Any) -> float | None:
    """Return the mean of a measure, or None."""
    return getattr(measure, "value", measure)


def run(cell: Cell, device: str = "cpu") -> Result:
    from augury.auditing.audit import audit
    from augury.methods.learn import learn
    from augury.models.networks import build as build_network
    from augury.models.weight_tied import tie
    from augury.training.batches import streams
    from augury.transforms.vocabulary import build
    from papers.genuine.trace import SpectrumTrace

    data = data_of(cell)
    group: Any = build([group_of(cell)], data.kind, data.input_shape)
    net = build_network(cell.model, data.input_shape, data.n_outputs, streams(cell.seed)["network"])
    net = (tie(net, group) if cell.algorithm == "weight_tied" else net).to(device)  # tied now: it is traced
    trace = SpectrumTrace(net, data.x_test[:TRACED].to(device))
    settings = {"device": device, **complete(cell), "generators": tuple(cell.settings["generators"])}
    found = learn(data, net, cell.algorithm, callbacks=trace, **settings, seed=cell.seed)
    model = found.model.cpu()
    drift = {name: name for name in [OTHER.get(cell.data)] if name is not None}
    report = audit(model, data, group, drift=drift, worst=0).to_json()
    for name in ("per_class", "curve", "worst", "model", "data", "advice"):
        del report[name]  # no table shows it
    drawn = cell.seed == 0 and cell.data in DIGITS and cell.algorithm in METHODS
    maps = saliency_maps(model, data.x_test[:SHOWN], group) if drawn else None
    measured = {"audit": report, "spectrum": _columns(trace.rows), "maps": maps}
    return result_of(cell, data, found, nu=found.metrics[-1].get("nu"), **measured)


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
    from augury.auditing.measures import compare
    from augury.auditing.orbits import Drawn

    elements = range(min(VIEWS, group.order))
    seen = compare(model, x, Drawn([(group, elements)]).apply, len(elements))
    assert seen.m_g is not None and seen.SI is not None

    def whole(pictures: "Tensor") -> Any:
        flat = pictures.sum(1)  # over channels
        return (LEVELS * flat / flat.abs().amax((1, 2), keepdim=True).clamp(min=1e-30)).round().int().tolist()

    triples = zip(seen.views, seen.m_g, seen.SI, strict=True)
    return [{"views": whole(v), "maps": whole(m), "SI": [round(s, 4) for s in SI.tolist()]} for v, m, SI in triples]
