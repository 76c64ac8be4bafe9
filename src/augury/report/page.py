"""From folders to one HTML file."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from augury import __version__
from augury.core.errors import InputError
from augury.core.files import write_text
from augury.report.adapted import adapted_page
from augury.report.audited import audited_page
from augury.report.compared import compared_page
from augury.report.learned import learned_page
from augury.report.pretrained import pretrained_page
from augury.training.run_folder import REPORT, Adapted, Audited, Found, Pretrained, Run, read_run

if TYPE_CHECKING:
    from jinja2 import Environment

COMPARISON = "comparison.html"  # the default place of the page of several runs
GENERATOR = '<meta name="generator" content="augury'  # what marks a page as ours: only such a file is ever overwritten
TEMPLATES = Path(__file__).parent / "templates"
PAGES: dict[type[Found], tuple[str, Callable[[Any], dict[str, Any]]]] = {
    Run: ("learned.html", learned_page),
    Audited: ("audited.html", audited_page),
    Pretrained: ("pretrained.html", pretrained_page),
    Adapted: ("adapted.html", adapted_page),
}  # template of what a folder holds, and what is filled in


def write_report(*runs: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a run, or the comparison of several, as one HTML file.

    Parameters
    ----------
    runs
        Folders written by `augury learn`, `amortize`, `adapt` or `audit`.
    out
        The file. Default: `report.html` in the run's folder, or `comparison.html` here for several.

    Returns
    -------
    Path
        The file.
    """
    if not runs:
        raise InputError("name at least one run's folder, such as runs/demo; got none.")
    folders = [Path(run) for run in runs]
    file = Path(out) if out is not None else folders[0] / REPORT if len(folders) == 1 else Path(COMPARISON)
    check_out(file)
    write_text(file, render([read_run(folder) for folder in folders]))
    return file


def check_out(file: Path) -> None:
    """Raise unless a report may be written here."""
    if file.is_dir():
        raise InputError(f"{file} is a folder. Name a file in it: {file / REPORT}.")
    if file.suffix not in (".html", ".htm"):
        raise InputError(f"a report must be an .html file; got {file}. Try {file.with_suffix('.html')}.")
    if file.is_file():
        with file.open(encoding="utf-8", errors="replace") as stream:
            if GENERATOR not in stream.read(2000):
                raise InputError(
                    f"{file} exists and is not a report of Augury, so it is not overwritten. Choose another."
                )


def render(found: Sequence[Found]) -> str:
    """Return the page of what was found: one thing in full, several side by side."""
    several = ("compared.html", lambda _: compared_page(found))
    template, page = several if len(found) > 1 else PAGES[type(found[0])]
    return _environment().get_template(template).render(version=__version__, **page(found[0]))


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name, file in (("style", "page.css"), ("script", "page.js")):
        environment.globals[name] = Markup((TEMPLATES / file).read_text(encoding="utf-8"))
    return environment
