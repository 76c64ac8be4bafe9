"""The settings: what is refused, and the way to JSON and back."""

import json
import subprocess
import sys

import pytest

from augury.config.learn import DEFAULT_METHOD, METHOD_DEFAULTS, LearnConfig
from augury.core.errors import InputError


def test_json_and_back():
    config = LearnConfig.for_method("augmented", widths={"rotation": 30.0}, generators=("rotation",), seed=3)
    assert LearnConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_the_methods_own_defaults_give_way_to_what_was_given():
    assert LearnConfig.for_method("augerino").sampling == "stratified"
    assert LearnConfig.for_method("augerino", sampling="grid").sampling == "grid"
    assert LearnConfig.for_method("plain").samples == 1
    assert DEFAULT_METHOD in METHOD_DEFAULTS


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"samples": 0}, "samples must be at least 1; got 0"),
        ({"samples_eval": -3}, "samples_eval must be at least 1; got -3"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"rate": -0.1}, "rate must be at least 0"),
        ({"rate": float("nan")}, "rate must be at least 0; got nan"),
        ({"optimizer": "adm"}, "Did you mean 'adam'"),
        ({"epocs": 3}, "setting must be one of .*Did you mean 'epochs'"),
    ],
)
def test_bad_settings(given, message):
    with pytest.raises(InputError, match=message):
        LearnConfig.for_method("augerino", **given)


def test_an_unknown_method_gets_a_suggestion():
    with pytest.raises(InputError, match="Did you mean 'augerino'"):
        LearnConfig.for_method("augerin")


def test_an_unknown_key_in_json_is_an_error():
    with pytest.raises(InputError, match="LearnConfig has no field 'colour'"):
        LearnConfig.from_json({"colour": "red"})


def test_settings_do_not_load_torch():
    code = "import sys, augury.config.learn; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
