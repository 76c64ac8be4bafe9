"""Small words of the terminal and the report that were wrong once."""

import re
import tomllib
from pathlib import Path

import pytest

from augury.auditing.verdict import decide
from augury.cli.console import plural, table, widths_table
from augury.records.exhibits import Gallery, Route
from augury.records.results import Measure, Scores, Width
from augury.report.orbit import _learned


def scores(relative: float, agreement: float = 1.0) -> Scores:
    return Scores(LI=Measure(relative), LI_relative=relative, DI=None, SI=Measure(1.0), agreement=Measure(agreement))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (["noisy"], "It breaks on noisy: there, 50 % of views"),
        (["noisy", "faded"], "It breaks on noisy, faded: on faded, 50 % of views"),
    ],
)
def test_where_an_invariance_breaks(broken, said):
    drift = {name: scores(0.5 + k, 0.5) for k, name in enumerate(broken)}
    verdict = decide("C4", scores(0.0), scores(0.0), {**drift, "inverted": scores(0.0)}, constant=False)
    assert said in verdict.why


def test_numbers_of_things():
    assert [plural(n, "epoch") for n in (0, 1, 2, 1000)] == ["0 epochs", "1 epoch", "2 epochs", "1,000 epochs"]


def test_columns_of_widths(capsys):
    from rich.console import Console

    widths = {"shear": Width(0.1, "", 0.0, None), "rotation": Width(20.0, "deg", 10.0, 30.0)}
    Console().print(widths_table(widths))
    out = capsys.readouterr().out
    assert "at least 0.00" in out and "10.0 deg to 30.0 deg" in out and "planted" not in out
    Console().print(widths_table({"rotation": Width(20.0, "deg", planted=45.0)}))
    out = capsys.readouterr().out
    assert "planted" in out and "interval" not in out


def test_brackets_in_names_are_shown(capsys):
    from rich.console import Console

    Console().print(table("On 5 inputs of data [v2]", ["a [b]"], [["[red]x"]]))
    out = capsys.readouterr().out
    assert "data [v2]" in out and "a [b]" in out and "[red]x" in out


def test_a_finite_group_moves_with_its_probability():
    route = Route("flip_x", "element", (0.0, 1.0), 10.0, Gallery(1, 2, "picture", "a.png"))
    assert _learned(route, "learned") == "learned: moved with probability 10.0 %"


def test_extras_have_one_spelling_and_exist():
    root = Path(__file__).parents[1]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("src/**/*.py"), *root.glob("papers/**/*.*")]
    named = [
        (page.name, command, name)
        for page in pages
        if page.suffix in (".md", ".py") and "_build" not in page.parts
        for command, name in re.findall(r"(pip install [^\n`]*?\[(\w+)\].)", page.read_text())
    ]
    assert len(named) >= 5
    for page, command, name in named:
        assert command == f"pip install -e '.[{name}]'" and name in extras, (page, command)
