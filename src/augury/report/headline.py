"""The answer first: what was learned, in a sentence, in numbers, and with and without."""

from dataclasses import dataclass

from markupsafe import Markup

from augury.records.results import Invariance, Width
from augury.report.numbers import (
    Number,
    amount,
    either_way,
    interval,
    listed,
    number,
    percent,
    seconds,
    signed,
)
from augury.report.plots import width_bar
from augury.training.run_folder import Run

TONES = {"invariant": "good", "not invariant": "calm", "undecided": "open", "given": "told"}
"""How a verdict looks."""


@dataclass(frozen=True)
class Row:
    """One width, ready to be shown."""

    name: str
    """Its generator."""
    value: str
    """How far."""
    interval: str
    """The 95 % interval."""
    planted: str
    """The truth, where it is known; "" otherwise."""
    verdict: str
    """In a word."""
    tone: str
    """How that word looks."""
    bar: Markup
    """The same as a picture."""


@dataclass(frozen=True)
class Score:
    """A figure with and without the invariance."""

    title: str
    """What is measured."""
    with_it: str
    """Of the run."""
    without: str
    """Of the baseline; "" where there is none."""
    difference: str
    """Between them."""
    better: bool
    """Whether the run has the better one."""


def rows(widths: dict[str, Width]) -> list[Row]:
    """Return every width, ready to be shown."""
    return [
        Row(
            name=name,
            value=either_way(w.value, w.unit),
            interval=interval(w.low, w.high, w.unit) if w.low is not None else "",
            planted="" if w.planted is None else either_way(w.planted, w.unit),
            verdict=w.verdict,
            tone=TONES.get(w.verdict, "open"),
            bar=width_bar(w),
        )
        for name, w in widths.items()
    ]


def headline(found: Invariance) -> Markup:
    """Say what was learned in a sentence."""
    strong = Markup("<strong>{}</strong>")
    by: dict[str, list[str]] = {}
    for name, width in found.widths.items():
        by.setdefault(width.verdict, []).append(strong.format(f"{name} {_up_to(width)}"))
    if not found.widths:
        return Markup("This model was trained without a distribution over transformations.")
    if "invariant" in by:
        return Markup("The labels survive {}.").format(Markup(listed(by["invariant"])))
    moving = [
        strong.format(f"{n} {_up_to(w)}")
        for n, w in found.widths.items()
        if amount(w.value, w.unit) != _none(w)
    ]
    if "given" in by:
        told = Markup(listed(moving)) if moving else Markup("no transformation at all")
        return Markup("Nothing was learned: the widths were given, {}.").format(told)
    if "undecided" in by:
        return Markup("Undecided: these data do not settle {}.").format(Markup(listed(by["undecided"])))
    return Markup("No invariance was found: the labels change under every transformation that was allowed.")


def _up_to(width: Width) -> str:
    return f"{'with' if width.unit == '%' else 'up to'} {either_way(width.value, width.unit)}"


def _none(width: Width) -> str:
    return amount(1.0 if width.unit == "factor" else 0.0, width.unit)


def asides(found: Invariance) -> list[str]:
    """Say in a sentence each what the headline leaves out, the notes of the method among it."""
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


def scores(run: Run) -> list[Score]:
    """Return what was gained, with and without."""
    found = run.invariance
    assert found is not None
    plain = None if run.baseline is None else run.baseline.invariance
    out = []
    if found.test_accuracy is not None:
        other = None if plain is None else plain.test_accuracy
        out.append(_score("Test accuracy", found.test_accuracy, other, "percent"))
    if found.test_error is not None:
        other = None if plain is None else plain.test_error
        out.append(_score("Test error (RMSE)", found.test_error, other, "less"))
    if found.log_evidence is not None:
        out.append(_score("Log evidence (nats)", found.log_evidence, found.log_evidence_without, "number"))
    times = "" if plain is None else seconds(plain.seconds)
    out.append(Score("Training time", seconds(found.seconds), times, "", False))
    return out


def _score(title: str, value: Number, other: Number | None, kind: str) -> Score:
    write = percent if kind == "percent" else (lambda v: number(v, 4))
    if other is None:
        return Score(title, write(value), "", "", False)
    d = value - other
    text = f"{100 * d:.1f} points".replace("-", "−") if kind == "percent" else number(d, 4)
    return Score(title, write(value), write(other), signed(d, text), d < 0 if kind == "less" else d > 0)
