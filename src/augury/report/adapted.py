"""The page of an adaptation: the descriptor, the others tried, and the generalisation bound."""

from typing import Any

from augury.report.numbers import number, percent, seconds
from augury.report.plots import Bar, Line, Plot, bar_list, draw
from augury.report.read import Adapted

TERMS = {
    "risk": "training loss",
    "complexity": "complexity of the head",
    "choice": "choice of the descriptor",
}
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
    """Return the values of the template."""
    values = found.values
    descriptor = values.get("descriptor", {})
    bound = values.get("bound") or {}
    measure = "log evidence" if values.get("criterion") == "evidence" else "minus the training loss"
    facts = [(name, _text(values[key])) for key, name in SHOWN.items() if values.get(key) not in (None, "")]
    facts += [(key, _text(value)) for key, value in (values.get("facts") or {}).items()]
    facts += [(key, _text(value)) for key, value in found.command.items() if key != "command"]
    return {
        "title": found.name,
        "facts_line": [
            str(values.get("data", "")),
            f"{values.get('N', 0):,} examples",
            seconds(values.get("seconds")),
        ],
        "words": str(values.get("words") or "no descriptor"),
        "descriptor": bar_list([Bar(n, v, f"{v:.2f}") for n, v in descriptor.items()], 1.0)
        if descriptor
        else None,
        "scores": _scores(values),
        "measure": measure,
        "trials": [(plot.title, draw(plot)) for plot in _trials(values, measure)],
        "tried": len(values.get("trials") or []),
        "bound": bound,
        "bound_total": number(bound.get("total")),
        "bound_bars": _bound(bound),
        "sure": percent(1 - bound["failure"], 0) if "failure" in bound else "close to 1",
        "command": found.command.get("command"),
        "facts": facts,
    }


def _text(value: Any) -> str:
    return number(value, 5) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _scores(values: dict[str, Any]) -> list[tuple[str, str, str]]:
    name = str(values.get("score_name", "accuracy"))
    write = percent if name == "accuracy" else number
    tiles = [
        (name.capitalize(), write(values.get("score")), f"on the {values.get('scored_on', 'test')} examples")
    ]
    if values.get("held_out") is not None:
        tiles.append((
            "Held out",
            write(values["held_out"]),
            "each example predicted by a head fitted without it",
        ))
    if values.get("train_score") is not None:
        tiles.append(("On the training examples", write(values["train_score"]), ""))
    return tiles


def _trials(values: dict[str, Any], measure: str) -> list[Plot]:
    """Return the criterion against each entry of the descriptor, over all trials; the chosen value is marked."""
    trials = values.get("trials") or []
    plots = []
    for k, (name, chosen) in enumerate(values.get("descriptor", {}).items()):
        points = sorted(
            (t["descriptor"][name], t["value"]) for t in trials if name in t.get("descriptor", {})
        )
        if len(points) > 1:
            line = Line(measure, [x for x, _ in points], [y for _, y in points], (), k, dots=True)
            plots.append(Plot(name, [line], x_label=f"descriptor for {name}", at=("chosen", chosen)))
    return plots


def _bound(bound: dict[str, Any]) -> Any:
    if not bound:
        return None
    bars = [Bar(words, bound[term], number(bound[term]), k) for k, (term, words) in enumerate(TERMS.items())]
    bars.append(Bar("together", bound["total"], number(bound["total"]), 6))
    return bar_list(bars, limit=("1: above it the bound is vacuous", 1.0))
