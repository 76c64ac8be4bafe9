"""Run one cell of paper B: learn, and keep filter banks for the figures. Torch is loaded inside the functions."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from augury.records.results import Invariance
from papers.invariant_weights.budgets import METHOD, SGPR, row_of
from papers.learning import data_of, machine, result_of
from papers.recipes import complete
from papers.results import Cell, Result

if TYPE_CHECKING:
    from augury.data.dataset import Dataset
    from augury.methods.learn import Learned
    from augury.models.shallow import Shallow
    from augury.transforms.base import Transform
    from papers.invariant_weights.filter_trace import FilterTrace

COPIES = 7
"""Transformed copies of a filter in a picture, as in the paper's Figure 3."""
SHOWN = 2
"""Filters that are shown."""
GRID = "grid"
"""The row whose banks are kept over training; it trains on equally spaced views, as in the paper's Figure 3."""
MATCHING = {("rotation", "rotated"), ("translation", "translated"), ("scale", "scaled")}
"""Rows and variants whose banks are kept at the end of training; those of affine transformations always are."""


def run(cell: Cell, device: str = "cpu") -> Result:
    if cell.algorithm == SGPR:
        return _baseline(cell, device)
    data = data_of(cell)
    net, transform = parts(cell, data)
    traces = _traces(net, transform, cell) if drawn(cell) else {}
    found = learned(cell, data, net, transform, device, traces)
    return result_of(cell, data, found, **_banks(net, traces, row_of(cell) == GRID))


def parts(cell: Cell, data: "Dataset") -> "tuple[Shallow, Transform]":
    """Return the network and the transformation of a cell, not yet trained."""
    from augury.models.shallow import Relu, Rff
    from augury.training.batches import streams
    from augury.transforms.vocabulary import build

    make: Any = {"rff": Rff, "relu": Relu}[cell.model]
    rng = streams(cell.seed)["network"]
    net = make(data.input_shape, data.n_outputs, rng, **cell.settings["network"])
    sampling = cell.settings.get("sampling", "stratified")
    return net, build(cell.settings["generators"], data.kind, data.input_shape, sampling)


def learned(
    cell: Cell,
    data: "Dataset",
    net: "Shallow",
    transform: "Transform",
    device: str = "cpu",
    traces: "dict[str, FilterTrace] | None" = None,
) -> "Learned":
    from augury.methods.learn import learn

    ours = ("network", "generators")
    settings = {"device": device} | {k: v for k, v in complete(cell).items() if k not in ours}
    callbacks = list((traces or {}).values())
    found = learn(data, net, METHOD, transform=transform, callbacks=callbacks, seed=cell.seed, **settings)
    found.model.cpu()
    return replace(found, invariance=replace(found.invariance, model=cell.model))


def drawn(cell: Cell) -> bool:
    """Return whether a figure shows the filters of a cell: they take much room, so only the first seed's are kept."""
    row = row_of(cell)
    shown = row in (GRID, "affine") or (row, cell.variant) in MATCHING
    return cell.seed == 0 and cell.model == "relu" and shown


def _traces(net: "Shallow", transform: Any, cell: Cell) -> "dict[str, FilterTrace]":
    """Return traces with random noise, and with equally spaced noise if there is one width."""
    from augury.core.rng import generator
    from augury.transforms.base import grid, independent
    from papers.invariant_weights.filter_trace import FilterTrace

    K = transform.noise_dim
    noises = {"sampled": independent(1, COPIES, K, generator(cell.seed))[0]}
    if K == 1:
        noises["equal"] = grid(COPIES, 1)
    return {name: FilterTrace(net, transform, eps) for name, eps in noises.items()}


def _banks(net: "Shallow", traces: "dict[str, FilterTrace]", whole: bool) -> dict[str, Any]:
    """Return the banks of the leading units at the end of training, or over all of it."""
    from papers.invariant_weights.filter_trace import leading_units
    from papers.invariant_weights.filters import pack

    if not traces:
        return {}
    units = leading_units(net, SHOWN)
    banks = {name: trace.bank(units) for name, trace in traces.items()}
    epochs = [s.epoch for s in next(iter(traces.values())).snapshots]
    return {
        "units": units,
        "bank_epochs": epochs if whole else epochs[-1:],
        "banks": {name: pack(bank if whole else bank[-1:]) for name, bank in banks.items()},
    }


def _baseline(cell: Cell, device: str) -> Result:
    from augury.core.rng import generator
    from papers.invariant_weights.sgpr import sgpr

    data = data_of(cell)
    x, y, x_test = (t[:].to(device) for t in (data.x_train, data.y_train, data.x_test))
    fit = sgpr(x, y, x_test, generator(cell.seed), **cell.settings)
    right = float((fit.predictions.argmax(1).cpu() == data.y_test).float().mean())
    invariance = Invariance({}, SGPR, cell.model, data.source, right, seconds=fit.seconds)
    hyper = {"length_scale": fit.length_scale, "variance": fit.variance, "noise": fit.noise, "bound": fit.bound}
    curves: dict[str, list[float | None]] = {"bound": [*fit.bounds, fit.bound]}
    return Result(cell.key, cell, invariance, 0, len(x), curves, machine(), hyper)
