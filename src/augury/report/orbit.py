"""Transformed inputs on the page: embedded sheets of pictures, single frames, and the data of the slider."""

import math
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from augury.core.errors import RunError
from augury.records.exhibits import BOX, VIEWS, Example, Exhibits, Gallery, Route
from augury.report.numbers import Number, amount, either_way, number
from augury.training.run_folder import Run

TYPES = {".png": "image/png", ".jpg": "image/jpeg"}
BUDGET = 5_500_000  # largest number of bytes of pictures on a page, which keeps it below 8 MB


class Sheets:
    """The sheets of a page, within the budget."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.left = folder / VIEWS, BUDGET
        self.rules: list[Markup] = []

    def add(self, gallery: Gallery) -> str | None:
        """Embed the pictures of a gallery; return their CSS class, or None if they do not fit."""
        if gallery.file is None:
            return ""
        path = self.folder / Path(gallery.file).name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise RunError(f"cannot read {path}: {error.strerror}. The run's folder is damaged.") from error
        if len(data) > self.left or path.suffix not in TYPES:
            return None
        self.left -= len(data)
        name = f"sheet{len(self.rules)}"
        rule = Markup(".{}{{background-image:url(data:{};base64,{});background-size:{}% {}%}}")
        size = 100 * gallery.columns, 100 * gallery.rows
        self.rules.append(rule.format(name, TYPES[path.suffix], b64encode(data).decode(), *size))
        return name

    @property
    def css(self) -> Markup:
        return Markup("\n").join(self.rules)


def frame(gallery: Gallery, sheet: str, row: int, column: int, label: str = "") -> Markup:
    described = Markup('role="img" aria-label="{}"').format(label) if label else Markup('aria-hidden="true"')
    if gallery.file is not None:
        x, y = _share(column, gallery.columns), _share(row, gallery.rows)
        style = f"background-position:{x:g}% {y:g}%;aspect-ratio:{gallery.width}/{gallery.height}"
        return Markup('<span class="frame {}" style="{}" {}></span>').format(sheet, style, described)
    return Markup(
        '<svg class="frame drawing" viewBox="0 0 {b} {b}" {s}>{behind}<path class="{c}" d="{d}"/></svg>'
    ).format(b=BOX, s=described, behind=backdrop(gallery), c=gallery.style, d=path(gallery, row, column))


def path(gallery: Gallery, row: int, column: int) -> str:
    """Return a drawing as the commands of an SVG path; a dot is a line of no length with round ends."""
    return "".join(_stroke(stroke, gallery.style) for stroke in gallery.strokes[row][column])


def _stroke(stroke: Sequence[int], style: str) -> str:
    points = [f"{x} {y}" for x, y in zip(stroke[::2], stroke[1::2], strict=True)]
    return "".join(f"M{p}h0" for p in points) if style == "dots" else f"M{'L'.join(points)}"


def backdrop(gallery: Gallery) -> Markup:
    """Return the dots behind every frame of a gallery."""
    dots = [
        Markup('<path class="dots behind c{}" d="{}"/>').format(c % 7, _stroke(flat, "dots"))
        for c, flat in enumerate(gallery.backdrop)
        if flat
    ]
    return Markup("").join(dots)


def _share(k: int, n: int) -> float:
    """Return the CSS background position of the k-th of n frames."""
    return 0.0 if n < 2 else round(100 * k / (n - 1), 4)


def orbit_data(run: Run, sheets: Sheets) -> dict[str, Any] | None:
    left = run.exhibits
    if left is None or not left.routes:
        return None
    routes = [_route(k, route, sheets, origin(run)) for k, route in enumerate(left.routes)]
    shown = [route for route in routes if route is not None]
    if not shown:
        return None
    models = [(str(run.config.get("method", "this model")), left.answers)]
    if run.beside is not None:
        models.append((run.beside.model, run.beside))
    return {
        "examples": [{"label": _called(example)} for example in left.examples],
        "classes": list(left.class_names),
        "task": left.task,
        "routes": shown,
        "origin": origin(run),
        "models": [
            {"name": name} | {field: getattr(answers, field) for field in ("classes", "chances", "truth", "values")}
            for name, answers in models
        ],
    }


def _called(example: Example) -> str:
    return example.label or ", ".join(number(v) for v in example.target)


def origin(run: Run) -> str:
    """Return whether the widths were given or learned."""
    widths = {} if run.invariance is None else run.invariance.widths
    return "given" if widths and all(w.verdict == "given" for w in widths.values()) else "learned"


def _route(k: int, route: Route, sheets: Sheets, how: str) -> dict[str, Any] | None:
    sheet = sheets.add(route.frames)
    if sheet is None:
        return None
    gallery = route.frames
    unchanged = 1.0 if route.unit == "factor" else 0.0
    values: dict[str, Any] = {
        "index": k,
        "name": route.name,
        "at": [f"step {at:.0f}" if route.learned is None else amount(at, route.unit) for at in route.at],
        "inside": [_inside(at, route) for at in route.at],
        "zone": _zone(route),
        "learned": _learned(route, how),
        "start": route.at.index(unchanged) if unchanged in route.at else 0,
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


def _inside(at: Number, route: Route) -> bool:
    if route.learned is None or route.unit == "element":
        return True
    size = max(at, 1 / at) if route.unit == "factor" else abs(at)
    return size <= route.learned * (1 + 1e-6)


def _zone(route: Route) -> list[float]:
    """Return the learned range as shares of the slider."""
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
        return f"a path inside the {how} distribution"
    if route.unit == "element":
        return f"{how}: moved with probability {amount(route.learned, '%')}"
    return f"{how}: {either_way(route.learned, route.unit)}"


def drawn_examples(left: Exhibits | None, sheets: Sheets) -> list[tuple[str, Markup, list[Markup]]]:
    """Return every example with its name, itself, and draws from the learned distribution."""
    if left is None or left.draws is None:
        return []
    sheet = sheets.add(left.draws)
    if sheet is None:
        return []
    out = []
    for r, example in enumerate(left.examples):
        name = _called(example)
        input_ = frame(left.draws, sheet, r, 0, f"{name}: as it is in the data")
        out.append((name, input_, [frame(left.draws, sheet, r, c) for c in range(1, left.draws.columns)]))
    return out
