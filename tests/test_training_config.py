"""The settings: what is refused, and the way to JSON and back."""

import json
from dataclasses import fields

import pytest

from augury.config.learn import DEFAULT_METHOD, METHOD_DEFAULTS, EvidenceConfig, LearnConfig
from augury.config.synonyms import SYNONYMS, renamed
from refusal import refused


def test_json_and_back_without_unknown_keys():
    config = LearnConfig.for_method("augmented", widths={"rotation": 30.0}, generators=("rotation",), seed=3)
    assert LearnConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    refused("LearnConfig has no field 'colour'", LearnConfig.from_json, {"colour": "red"})


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
        ({"epochs": -1}, "epochs must be at least 0"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"rate": -0.1}, "rate must be at least 0"),
        ({"rate": float("nan")}, "rate must be at least 0; got nan"),
        ({"optimizer": "adm"}, "Did you mean 'adam'"),
        ({"epocs": 3}, "setting must be one of .*Did you mean 'epochs'"),
    ],
)
def test_bad_settings(given, message):
    refused(message, LearnConfig.for_method, "augerino", **given)


def test_the_words_of_the_field_are_understood():
    words = {"lr": 0.1, "batch_size": 7, "n_samples": 3, "max_epochs": 2, "random_state": 5}
    config = LearnConfig.for_method("lila", **words)
    assert (config.rate, config.batch, config.samples, config.epochs, config.seed) == (0.1, 7, 3, 2, 5)
    assert set(SYNONYMS.values()) <= {f.name for f in fields(LearnConfig)}
    assert not set(SYNONYMS) & {f.name for f in fields(LearnConfig)}
    refused("rate and lr are one setting; give rate alone", LearnConfig.for_method, "lila", rate=0.1, lr=0.1)
    refused("batch_size and batch", renamed, {"batch_size": 1, "batch": 1})


def test_the_evidence_has_the_defaults_of_a_run():
    config = LearnConfig()
    assert EvidenceConfig.of(**config.for_evidence()) == EvidenceConfig()
    assert list(config.to_json())[:2] == ["method", "model"]
    refused("Did you mean 'eta_rate'", EvidenceConfig.of, eta_rat=0.1)
    refused("delta must be a positive", LearnConfig, delta=0.0)
