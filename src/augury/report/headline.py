"""The result first: what was learned, in a sentence, in numbers, and beside the baseline."""

from functools import partial
from typing import Any

from markupsafe import Markup

from augury.records.results import Invariance, Width
from augury.report.numbers import amount, either_way, interval, listed, number, percent, seconds
from augury.report.plots import width_bar
from augury.training.run_folder import Run

TONES = {"invariant": "good", "not invariant": "calm", "undecided": "open", "given": "given"}  # style of each verdict


def width_rows(widths: dict[str, Width]) -> list[dict[str, str]]:
    """Return every width as text; "" for an interval or a planted truth that it has not."""
    return [
        {
            "name": name,
            "value": either_way(w.value, w.unit),
            "interval": interval(w.low, w.high, w.unit) if w.low is not None else "",
            "planted": "" if w.planted is None else either_way(w.planted, w.unit),
            "verdict": w.verdict,
            "tone": TONES.get(w.verdict, "open"),
            "bar": width_bar(w),
        }
        for name, w in widths.items()
    ]


def headline(found: Invariance) -> Markup:
    strong = Markup("<strong>{}</strong>")
    by: dict[str, list[str]] = {}
    for name, width in found.widths.items():
        by.setdefault(width.verdict, []).append(strong.format(_moved(name, width)))
    if not found.widths:
        return Markup("This model was trained without a distribution over transformations.")
    if "invariant" in by:
        return Markup("The labels of most inputs do not change under {}.").format(Markup(listed(by["invariant"])))
    if "given" in by:
        moving = [strong.format(_moved(n, w)) for n, w in found.widths.items() if _moved(n, w) != n]
        fixed = Markup(listed(moving)) if moving else Markup("no transformation at all")
        return Markup("Nothing was learned: the widths were given, {}.").format(fixed)
    if "undecided" in by:
        return Markup("Undecided: these data do not determine {}.").format(Markup(listed(by["undecided"])))
    return Markup("No invariance was found: the labels change under every transformation that was allowed.")


def _moved(name: str, width: Width) -> str:
    """Write "rotation up to ±30°", or the name alone where the width rounds to none."""
    none = 1.0 if width.unit == "factor" else 0.0
    if amount(width.value, width.unit) == amount(none, width.unit):
        return name
    return f"{name} {'with' if width.unit == '%' else 'up to'} {either_way(width.value, width.unit)}"


def asides(found: Invariance) -> list[str]:
    """Return what the headline leaves out, a sentence each, and the notes of the method."""
    said = []
    names = {v: [n for n, w in found.widths.items() if w.verdict == v] for v in TONES}
    if names["invariant"] and names["not invariant"]:
        said.append(f"No invariance to {listed(names['not invariant'])} was found.")
    if names["invariant"] and names["undecided"]:
        said.append(f"Undecided: {listed(names['undecided'])}.")
    planted = {n: w for n, w in found.widths.items() if w.planted is not None}
    truths = [f"{n} {either_way(w.planted, w.unit)}" for n, w in planted.items() if w.planted is not None]
    if truths:
        said.append(f"Planted in the data: {listed(truths)}.")
    return [*said, *found.notes]


def scores(run: Run) -> list[dict[str, Any]]:
    """Return the figures of a run beside those of its baseline, and whether it is better."""
    found = run.invariance
    assert found is not None
    plain = None if run.baseline is None else run.baseline.invariance
    compared = (
        ("Test accuracy", found.test_accuracy, getattr(plain, "test_accuracy", None), "percent"),
        ("Test error (RMSE)", found.test_error, getattr(plain, "test_error", None), "less"),
        ("Log evidence (nats)", found.log_evidence, found.log_evidence_without, "number"),
    )
    out = []
    for title, value, other, kind in compared:
        write = percent if kind == "percent" else partial(number, digits=4)
        if value is not None and other is not None:
            d = value - other
            text = f"{100 * d:.1f} points".replace("-", "−") if kind == "percent" else number(d, 4)
            better = d < 0 if kind == "less" else d > 0
            out.append(_score(title, write(value), write(other), text if d < 0 else f"+{text}", better))
        elif value is not None:
            out.append(_score(title, write(value)))
    return [*out, _score("Training time", seconds(found.seconds), "" if plain is None else seconds(plain.seconds))]


def _score(title: str, with_it: str, without: str = "", difference: str = "", better: bool = False) -> dict[str, Any]:
    return {"title": title, "with_it": with_it, "without": without, "difference": difference, "better": better}
