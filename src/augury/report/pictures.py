"""Frames on the page: every sheet of pictures is embedded once, and a frame shows one part of its sheet."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from augury.core.errors import RunError
from augury.records.exhibits import BOX, VIEWS, Gallery

TYPES = {".png": "image/png", ".jpg": "image/jpeg"}
BUDGET = 5_500_000
"""Largest number of bytes of pictures on a page, which keeps it below 8 MB."""


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
        """The CSS of all sheets."""
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
