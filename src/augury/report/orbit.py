"""What the slider walks through: frames, and what each model says of them, as one object for the page's script."""

import math
from typing import Any

from markupsafe import Markup

from augury.records.exhibits import Answers, Exhibits, Route
from augury.report.numbers import Number, amount, either_way, number
from augury.report.pictures import Sheets, backdrop, frame, path
from augury.training.run_folder import Run


def orbit_data(run: Run, sheets: Sheets) -> dict[str, Any] | None:
    """Return all that the slider needs."""
    left = run.exhibits
    if left is None or not left.routes:
        return None
    routes = [_route(k, route, sheets, word(run)) for k, route in enumerate(left.routes)]
    shown = [route for route in routes if route is not None]
    if not shown:
        return None
    answers = [(str(run.config.get("method", "this model")), left.answers)]
    if run.beside is not None:
        answers.append((run.beside.model, run.beside))
    return {
        "examples": [{"label": example.label or _target(example.target)} for example in left.examples],
        "classes": list(left.class_names),
        "task": left.task,
        "routes": shown,
        "word": word(run),
        "models": [_model(name, said) for name, said in answers],
    }


def _target(values: Any) -> str:
    return ", ".join(number(v) for v in values)


def word(run: Run) -> str:
    """Say how the widths came about."""
    widths = {} if run.invariance is None else run.invariance.widths
    return "given" if widths and all(w.verdict == "given" for w in widths.values()) else "learned"


def _route(k: int, route: Route, sheets: Sheets, how: str) -> dict[str, Any] | None:
    sheet = sheets.add(route.frames)
    if sheet is None:
        return None
    gallery = route.frames
    inside = [_inside(at, route) for at in route.at]
    values: dict[str, Any] = {
        "index": k,
        "name": route.name,
        "at": [_place(at, route) for at in route.at],
        "inside": inside,
        "zone": _zone(route),
        "learned": _learned(route, how),
        "start": _start(route),
        "sheet": sheet,
        "rows": gallery.rows,
        "columns": gallery.columns,
        "ratio": f"{gallery.width}/{gallery.height}",
        "style": gallery.style,
    }
    if gallery.file is None:
        values["paths"] = [[path(gallery, r, c) for c in range(gallery.columns)] for r in range(gallery.rows)]
        values["behind"] = str(backdrop(gallery))
    return values


def _start(route: Route) -> int:
    """Return the step at which the input itself is shown, where the route passes through it."""
    nothing = 1.0 if route.unit == "factor" else 0.0
    return route.at.index(nothing) if nothing in route.at else 0


def _place(at: Number, route: Route) -> str:
    return f"step {at:.0f}" if route.learned is None else amount(at, route.unit)


def _inside(at: Number, route: Route) -> bool:
    if route.learned is None or route.unit == "element":
        return True
    size = max(at, 1 / at) if route.unit == "factor" else abs(at)
    return size <= route.learned * (1 + 1e-6)


def _zone(route: Route) -> list[float]:
    """Return from where to where on the way the learned width reaches, as shares of the way."""
    if route.learned is None or route.unit == "element":
        return [0.0, 1.0]
    first, last, reach = route.at[0], route.at[-1], route.learned
    if route.unit == "factor":
        first, last, reach = math.log(first), math.log(last), math.log(reach)
    low = 0.0 if first >= 0 else -reach
    ends = [(end - first) / (last - first) for end in (low, reach)]
    return [round(min(1.0, max(0.0, end)), 4) for end in ends]


def _learned(route: Route, how: str) -> str:
    if route.learned is None:
        return f"a walk inside the {how} distribution"
    if route.unit == "element":
        return f"leaves the input with a chance of {amount(route.learned, '%')}"
    return f"{how}: {either_way(route.learned, route.unit)}"


def _model(name: str, said: Answers) -> dict[str, Any]:
    return {
        "name": name,
        "classes": said.classes,
        "chances": said.chances,
        "truth": said.truth,
        "values": said.values,
    }


def strip(left: Exhibits | None, sheets: Sheets) -> list[tuple[str, Markup, list[Markup]]]:
    """Return every example as it is in the data, and draws from the learned distribution."""
    if left is None or left.draws is None:
        return []
    sheet = sheets.add(left.draws)
    if sheet is None:
        return []
    out = []
    for r, example in enumerate(left.examples):
        name = example.label or _target(example.target)
        input_ = frame(left.draws, sheet, r, 0, f"{name}: as it is in the data")
        out.append((name, input_, [frame(left.draws, sheet, r, c) for c in range(1, left.draws.columns)]))
    return out
