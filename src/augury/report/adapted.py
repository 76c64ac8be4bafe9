"""The page of an adaptation: the descriptor, the others tried, and the generalisation bound."""

from typing import Any

from augury.records.results import Adaptation, Bound
from augury.report.numbers import number, percent, seconds
from augury.report.plots import Bar, Line, Plot, bar_list, draw
from augury.training.run_folder import Adapted

TERMS = {"risk": "training loss", "complexity": "complexity of the head", "choice": "choice of the descriptor"}
SHOWN = {
    "data": "data",
    "extractor": "extractor",
    "task": "task",
    "criterion": "criterion of the choice",
    "levels": "levels of an entry",
    "N": "training examples",
    "features": "features",
    "delta": "prior precision of the head",
    "log_evidence": "log evidence",
    "train_loss": "training loss",
}
"""Fields in the table of facts, and their names."""


def adapted_page(found: Adapted) -> dict[str, Any]:
    """Return all that the template of an adaptation needs."""
    record, bound = found.adaptation, found.adaptation.bound
    measure = "log evidence" if record.criterion == "evidence" else "minus the training loss"
    values = [(name, getattr(record, key)) for key, name in SHOWN.items()]
    facts = [(name, _text(value)) for name, value in values if value not in (None, "")]
    facts += [(key, _text(value)) for key, value in found.machine.items()]
    bars = [Bar(n, v, f"{v:.2f}") for n, v in record.descriptor.items()]
    return {
        "title": found.name,
        "facts_line": [record.data, f"{record.N:,} examples", seconds(record.seconds)],
        "words": record.words or "no descriptor",
        "descriptor": bar_list(bars, 1.0) if bars else None,
        "scores": _scores(record),
        "measure": measure,
        "trials": [(plot.title, draw(plot)) for plot in _trials(record, measure)],
        "tried": len(record.trials),
        "bound": bound,
        "bound_total": number(bound.total),
        "bound_bars": _bound(bound),
        "sure": percent(1 - bound.failure, 0),
        "command": found.command.get("command"),
        "facts": facts,
    }


def _text(value: Any) -> str:
    return number(value, 5) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _scores(record: Adaptation) -> list[tuple[str, str, str]]:
    write = percent if record.score_name == "accuracy" else number
    tiles = [(record.score_name.capitalize(), write(record.score), f"on the {record.scored_on} examples")]
    if record.held_out is not None:
        apart = "each example predicted by a head fitted without it"
        tiles.append(("Held out", write(record.held_out), apart))
    if record.train_score is not None:
        tiles.append(("On the training examples", write(record.train_score), ""))
    return tiles


def _trials(record: Adaptation, measure: str) -> list[Plot]:
    """Return the criterion against each entry of the descriptor, over all trials; the chosen value is marked."""
    plots = []
    for k, (name, chosen) in enumerate(record.descriptor.items()):
        points = sorted((t.descriptor[name], t.value) for t in record.trials if name in t.descriptor)
        if len(points) > 1:
            line = Line(measure, [x for x, _ in points], [y for _, y in points], (), k, dots=True)
            plots.append(Plot(name, [line], x_label=f"descriptor for {name}", at=("chosen", chosen)))
    return plots


def _bound(bound: Bound) -> Any:
    values = [(words, getattr(bound, term)) for term, words in TERMS.items()]
    bars = [Bar(words, value, number(value), k) for k, (words, value) in enumerate(values)]
    bars.append(Bar("together", bound.total, number(bound.total), 6))
    return bar_list(bars, limit=("1: above it the bound is vacuous", 1.0))
