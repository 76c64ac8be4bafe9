"""The inventory of public names: each loads, and there are at most forty."""

import subprocess
import sys

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
