"""The page of an audit."""

from collections.abc import Callable
from functools import partial
from typing import Any

from markupsafe import Markup

from augury.config.audit import LIMITS
from augury.records.results import Audit, Measure, Scores
from augury.report.numbers import NOTHING, UNITS, amount, number, percent, seconds
from augury.report.orbit import Sheets, frame
from augury.report.plots import Bar, Line, Plot, bar_list, draw, legend
from augury.training.run_folder import Audited

VERDICTS = {
    "genuine": ("good", "Invariance to {} is genuine."),
    "only on the training distribution": ("open", "Invariance to {} holds on the training distribution only."),
    "sensitive": ("bad", "The model is sensitive to {}."),
    "trivially invariant": ("bad", "The model is trivially invariant to {}: its output never changes."),
}  # style and sentence
COLUMNS = ("input", "view", "saliency of the input", "saliency of the view")
"""Columns of the worst inputs; both maps are in the frame of the input."""


CURVES = {
    "LI_relative": "Change of the logits (LI relative)",
    "agreement": "Views that keep the prediction",
    "SI": "Saliency similarity (SI)",
    "DI": "Change of the prediction (DI, nats)",
}  # measures that have a plot over strength


def audited_page(found: Audited) -> dict[str, Any]:
    audit, sheets = found.audit, Sheets(found.path)
    tone, sentence = VERDICTS.get(audit.verdict, ("open", "{}"))
    sets = {"as they are": audit.scores, "noise floor": audit.noise_floor, **audit.drift}
    return {
        "title": found.name,
        "facts_line": [audit.model, audit.data, f"{audit.images:,} inputs", seconds(audit.seconds)],
        "audit": audit,
        "tone": tone,
        "sentence": Markup(sentence).format(Markup("<strong>{}</strong>").format(audit.group)),
        "tiles": _tiles(audit),
        "sets": _table(sets),
        "drift": _drift(audit),
        "curves": [(plot.title, draw(plot), legend(plot.lines)) for plot in _plots(audit)],
        "steps": _table({amount(p.strength, p.unit): p.scores for p in audit.curve}),
        "worst": _worst(found, sheets),
        "columns": COLUMNS if found.worst is None else COLUMNS[: found.worst.columns],
        "classes": _table(audit.per_class),
        "class_bars": _classes(audit),
        "spectrum": _spectrum(audit),
        "command": found.command.get("command"),
        "facts": [(k, str(v)) for k, v in found.machine.items()],
        "sheets": sheets.css,
    }


def _tiles(audit: Audit) -> list[tuple[str, str, str]]:
    """Return the main figures: title, value, and what to compare it with."""
    figures: tuple[tuple[str, str, Callable[..., str]], ...] = (
        ("Views that keep the prediction", "agreement", percent),
        ("Saliency similarity (SI)", "SI", number),
        ("Change of the logits", "LI_relative", percent),
    )
    tiles = []
    for title, name, write in figures:
        value, alone = _value(getattr(audit, name)), _value(getattr(audit.noise_floor, name))
        if value is not None:
            tiles.append((title, write(value), "" if alone is None else f"interpolation alone: {write(alone)}"))
    if audit.accuracy is not None:
        tiles.append(("Accuracy", percent(audit.accuracy), f"on views: {percent(audit.accuracy_moved)}"))
    return tiles


def _value(measure: Measure | float | None) -> float | None:
    return measure.value if isinstance(measure, Measure) else measure


def _table(rows: dict[str, Scores]) -> tuple[list[str], list[list[str]]]:
    body = [
        [
            name,
            _with_error(s.LI),
            number(s.LI_relative),
            _with_error(s.DI),
            _with_error(s.SI),
            NOTHING if s.agreement is None else percent(s.agreement.value),
            f"{s.images:,}",
        ]
        for name, s in rows.items()
    ]
    return ["", "LI", "relative", "DI", "SI", "agreement", "inputs"], body


def _with_error(measure: Measure | None) -> str:
    if measure is None:
        return NOTHING
    error = "" if measure.stderr is None else f" ± {number(measure.stderr, 1)}"
    return f"{number(measure.value)}{error}"


def _plots(audit: Audit) -> list[Plot]:
    floor = audit.noise_floor
    limits = {
        "LI_relative": LIMITS.far + (floor.LI_relative or 0.0),
        "agreement": None if floor.agreement is None else LIMITS.keep * floor.agreement.value,
        "SI": None if floor.SI is None else LIMITS.SI * floor.SI.value,
    }
    plots = []
    for name, title in CURVES.items():
        own, alone = _line(audit, name, "the model", "scores", 0), _line(audit, name, "noise floor", "noise_floor", 6)
        if own is not None:
            unit, limit = audit.curve[0].unit, limits.get(name)
            plots.append(
                Plot(
                    title,
                    [own] if alone is None else [own, alone],
                    x_label=f"strength ({UNITS.get(unit, unit).strip() or 'steps'})",
                    levels=[] if limit is None else [("limit", limit)],
                    y_from=0.0,
                    y_to=1.0 if name in ("agreement", "SI") else None,
                    text=percent if name == "agreement" else partial(number, digits=3),
                )
            )
    return plots


def _line(audit: Audit, name: str, title: str, part: str, colour: int) -> Line | None:
    values = [(p.strength, getattr(getattr(p, part), name)) for p in audit.curve]
    have = [(x, v) for x, v in values if v is not None]
    if not have:
        return None
    y = [v.value if isinstance(v, Measure) else v for _, v in have]
    spread = [2 * (v.stderr or 0.0) if isinstance(v, Measure) else 0.0 for _, v in have]
    return Line(title, [x for x, _ in have], y, spread if any(spread) else (), colour, part == "noise_floor")


def _drift(audit: Audit) -> Markup | None:
    sets = {"as they are": audit.scores, **audit.drift}
    bars = [
        Bar(name, s.LI_relative, percent(s.LI_relative), 0 if name == "as they are" else 1)
        for name, s in sets.items()
        if s.LI_relative is not None
    ]
    limit = LIMITS.far + (audit.noise_floor.LI_relative or 0.0)
    return bar_list(bars, limit=("limit", limit)) if len(bars) > 1 else None


def _worst(found: Audited, sheets: Sheets) -> list[dict[str, Any]]:
    gallery = found.worst
    sheet = None if gallery is None else sheets.add(gallery)
    unit = found.audit.curve[0].unit if found.audit.curve else ""
    out = []
    for r, w in enumerate(found.audit.worst):
        said = f"predicted {w.prediction}; at {amount(w.strength, unit)}, {w.prediction_moved}"
        figures = f"LI {number(w.LI)}" + ("" if w.SI is None else f", SI {number(w.SI, 2)}")
        name = f"input {w.index}" + ("" if w.label is None else f", class {w.label}")
        frames: list[Markup] = []
        if gallery is not None and sheet is not None and r < gallery.rows:
            frames = [frame(gallery, sheet, r, c, f"{name}: {COLUMNS[c]}") for c in range(gallery.columns)]
        out.append({"name": name, "said": said, "figures": figures, "frames": frames})
    return out


def _classes(audit: Audit) -> Markup | None:
    some = {n: s.agreement.value for n, s in audit.per_class.items() if s.agreement is not None}
    if not some or len(some) > 30:
        return None
    ordered = sorted(some.items(), key=lambda pair: pair[1])
    return bar_list([Bar(name, share, percent(share)) for name, share in ordered], 1.0)


def _spectrum(audit: Audit) -> Markup | None:
    bars = [Bar(name, sigma, number(sigma), 0) for name, sigma in audit.sigma_max_weights.items()]
    if audit.sigma_max_jacobian is not None:
        bars.append(Bar("Jacobian (whole model)", audit.sigma_max_jacobian, number(audit.sigma_max_jacobian), 1))
    return bar_list(bars) if bars else None
