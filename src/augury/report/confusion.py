"""Errors of a model: its confusion matrix, or predictions against targets."""

from typing import Any

from markupsafe import Markup

from augury.records.exhibits import Exhibits
from augury.report.numbers import percent, span

SIDE, EDGE = 260, 24


def confusion(name: str, left: Exhibits | None) -> dict[str, Any] | None:
    """Return the confusion matrix of a model: its name, the classes, and for each class its counts and its accuracy."""
    if left is None or not left.confusion:
        return None
    rows = []
    for t, counts in enumerate(left.confusion):
        total, own = sum(counts), left.class_names[t]
        cells = [
            {"count": n, "share": n / max(total, 1), "right": t == p, "title": f"{own} predicted as {other}"}
            for p, (n, other) in enumerate(zip(counts, left.class_names, strict=True))
        ]
        rows.append((own, cells, percent(counts[t] / total, 0) if total else "–"))
    return {"name": name, "names": list(left.class_names), "rows": rows}


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
