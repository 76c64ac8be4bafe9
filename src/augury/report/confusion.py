"""Where a model errs: its confusion by class, or predictions against targets."""

from dataclasses import dataclass

from markupsafe import Markup

from augury.records.exhibits import Exhibits
from augury.report.numbers import percent, span

SIDE, EDGE = 260, 24


@dataclass(frozen=True)
class Cell:
    """One count of a confusion matrix."""

    count: int
    """How often."""
    share: float
    """Of the inputs of its class."""
    right: bool
    """Whether it stands on the diagonal."""
    said: str
    """In words."""


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix, ready to be shown."""

    name: str
    """Of which model."""
    names: list[str]
    """The classes."""
    rows: list[tuple[str, list[Cell], str]]
    """Each class with its counts and its share of right answers."""


def confusion(name: str, left: Exhibits | None) -> Confusion | None:
    """Return a confusion matrix, ready to be shown."""
    if left is None or not left.confusion:
        return None
    rows = []
    for t, counts in enumerate(left.confusion):
        total = sum(counts)
        cells = [
            Cell(
                n,
                n / total if total else 0.0,
                t == a,
                f"{left.class_names[t]} taken for {left.class_names[a]}",
            )
            for a, n in enumerate(counts)
        ]
        rows.append((left.class_names[t], cells, percent(counts[t] / total, 0) if total else "–"))
    return Confusion(name, list(left.class_names), rows)


def mistakes(left: Exhibits | None, most: int = 5) -> list[str]:
    """Return the most frequent mistakes in words."""
    if left is None:
        return []
    times = {1: "once", 2: "twice"}
    return [
        f"{left.class_names[t]} taken for {left.class_names[a]} ({times.get(n, f'{n} times')})"
        for t, a, n in left.confused[:most]
    ]


def scatter(left: Exhibits | None) -> Markup | None:
    """Return predictions against targets, for regression."""
    if left is None or not left.pairs:
        return None
    low, high = span([v for pair in left.pairs for v in pair])
    scale = (SIDE - 2 * EDGE) / (high - low)
    dots = "".join(
        f"M{EDGE + (t - low) * scale:.1f} {SIDE - EDGE - (p - low) * scale:.1f}h0" for t, p in left.pairs
    )
    return Markup(
        '<svg class="plot scatter" viewBox="0 0 {s} {s}" role="img" aria-label="{label}">'
        '<path class="level" d="M{e} {f}L{f} {e}"/><path class="dots c0" d="{dots}"/>'
        '<text class="mid soft" x="{m}" y="{t}">target</text>'
        '<text class="mid soft" x="10" y="{m}" transform="rotate(-90 10 {m})">prediction</text></svg>'
    ).format(
        s=SIDE, e=EDGE, f=SIDE - EDGE, m=SIDE / 2, t=SIDE - 4, dots=dots,
        label=f"Predictions against targets of {len(left.pairs)} test inputs; on the line they are equal.",
    )  # fmt: skip
