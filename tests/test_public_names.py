"""The inventory of public names: each loads, and there are at most forty."""

import subprocess
import sys
import tomllib
from pathlib import Path

import augury


def test_every_public_name_loads_from_where_the_table_says():
    for name in augury.__all__:
        assert (
            getattr(augury, name).__name__.rpartition(".")[2] == name
        )  # the audit is a room that can be called
    assert len(augury.__all__) <= 40
    assert set(augury.__all__) <= set(dir(augury))


def test_an_unknown_name_is_an_attribute_error():
    try:
        augury.lern  # noqa: B018
    except AttributeError as error:
        assert "lern" in str(error)
    else:
        raise AssertionError("augury.lern must not exist")


def test_importing_augury_does_not_load_torch():
    code = "import augury, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_type_checkers_are_told_that_augury_is_typed():
    marker = Path(augury.__file__).with_name("py.typed")
    pyproject = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    wheel = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert marker.is_file() and wheel["packages"] == ["src/augury"] and "exclude" not in wheel
