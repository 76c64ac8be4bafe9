"""Errors of a model: its confusion matrix, or predictions against targets."""

from dataclasses import dataclass

from markupsafe import Markup

from augury.records.exhibits import Exhibits
from augury.report.numbers import percent, span

SIDE, EDGE = 260, 24


@dataclass(frozen=True)
class Cell:
    """One count of a confusion matrix."""

    count: int
    share: float  # of the inputs of its class
    right: bool  # whether it is on the diagonal
    title: str  # description in words


@dataclass(frozen=True)
class Confusion:
    """The confusion matrix of a model, as text."""

    name: str  # name of the model
    names: list[str]  # names of the classes
    rows: list[tuple[str, list[Cell], str]]  # each class with its counts and its accuracy


def confusion(name: str, left: Exhibits | None) -> Confusion | None:
    if left is None or not left.confusion:
        return None
    rows = []
    for t, counts in enumerate(left.confusion):
        total = sum(counts)
        cells = [
            Cell(n, n / max(total, 1), t == p, f"{left.class_names[t]} predicted as {left.class_names[p]}")
            for p, n in enumerate(counts)
        ]
        rows.append((left.class_names[t], cells, percent(counts[t] / total, 0) if total else "–"))
    return Confusion(name, list(left.class_names), rows)


def mistakes(left: Exhibits | None, most: int = 5) -> list[str]:
    names, confused = ((), ()) if left is None else (left.class_names, left.confused[:most])
    times = {1: "once", 2: "twice"}
    return [f"{names[t]} predicted as {names[p]} ({times.get(n, f'{n} times')})" for t, p, n in confused]


def scatter(left: Exhibits | None) -> Markup | None:
    if left is None or not left.pairs:
        return None
    low, high = span([v for pair in left.pairs for v in pair])
    scale = (SIDE - 2 * EDGE) / (high - low)
    dots = "".join(f"M{EDGE + (t - low) * scale:.1f} {SIDE - EDGE - (p - low) * scale:.1f}h0" for t, p in left.pairs)
    return Markup(
        '<svg class="plot scatter" viewBox="0 0 {s} {s}" role="img" aria-label="{label}">'
        '<path class="level" d="M{e} {f}L{f} {e}"/><path class="dots c0" d="{dots}"/>'
        '<text class="mid soft" x="{m}" y="{t}">target</text>'
        '<text class="mid soft" x="10" y="{m}" transform="rotate(-90 10 {m})">prediction</text></svg>'
    ).format(
        s=SIDE, e=EDGE, f=SIDE - EDGE, m=SIDE / 2, t=SIDE - 4, dots=dots,
        label=f"Predictions against targets of {len(left.pairs)} test inputs; on the line they are equal.",
    )  # fmt: skip
