"""The inventory of public names: each loads, and there are at most forty."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import augury


def test_every_public_name_loads_from_where_the_table_says():
    for name in augury.__all__:
        assert getattr(augury, name).__name__.rpartition(".")[2] == name
    assert len(augury.__all__) <= 41
    assert set(augury.__all__) <= set(dir(augury))
    assert callable(augury.audit) and not isinstance(augury.audit, ModuleType)


@pytest.mark.slow  # mypy reads torch
def test_a_strict_type_checker_sees_real_types_in_a_file_that_uses_every_name(tmp_path):
    user = Path(__file__).with_name("typed_user.py")
    used = set(re.findall(r"augury\.(\w+)", user.read_text()))
    assert set(augury.__all__) <= used
    reveal = tmp_path / "reveal.py"
    lines = ["import augury", *(f"reveal_type(augury.{name})" for name in augury.__all__), "augury.lern"]
    reveal.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    environment = {**os.environ, "MYPYPATH": str(Path(augury.__file__).parents[1])}
    done = subprocess.run(
        [*command, str(user), str(reveal)], capture_output=True, text=True, check=False, env=environment
    )
    *notes, wrong, last = done.stdout.splitlines()
    assert len(notes) == len(augury.__all__) and not any(note.endswith('"Any"') for note in notes), done.stdout
    assert 'Module has no attribute "lern"' in wrong and last.startswith("Found 1 error"), done.stdout


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="lern"):
        augury.lern  # noqa: B018


def test_type_checkers_are_told_that_augury_is_typed():
    marker = Path(augury.__file__).with_name("py.typed")
    pyproject = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    wheel = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert marker.is_file() and wheel["packages"] == ["src/augury"] and "exclude" not in wheel
