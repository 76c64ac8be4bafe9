"""Runs of the papers are pinned: they name every setting, so that a default of the library cannot change them."""

from dataclasses import fields

import pytest

import papers_doubles as doubles
from augury.config import hyper, learn
from augury.config.hyper import AdaptConfig, AmortizeConfig
from augury.config.learn import LearnConfig
from papers.catalog import PAPERS, SCALES, item
from papers.hyperinvariances.pretraining import _config, _fields
from papers.recipes import ADAPT, complete

GIVEN = {"method", "model", "generators", "device", "seed"}
"""What `learn` is given by name, and by the data."""
LEARNED = ("lila", "invariant_weights", "genuine")
WITHOUT = ("sgpr", "flow", "descent", "adam")
"""Methods that are not trained by `learn`."""


def names(config) -> set[str]:
    return {f.name for f in fields(config)}


def cells(paper, scale):
    every = [c for name in PAPERS[paper].items for c in item(paper, name).grid(scale, [0])]
    return {c.key: c for c in every if c.algorithm not in WITHOUT}.values()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("paper", LEARNED)
def test_every_cell_names_every_setting(paper, scale):
    assert [c for c in cells(paper, scale) if set(complete(c)) | GIVEN != names(LearnConfig) | set(c.settings)] == []
    assert not any(set(c.settings) - names(LearnConfig) - {"network"} for c in cells(paper, scale))


def test_a_cell_says_what_its_recipe_does_not():
    early, late = doubles.cell("lila", epochs=3, rate=0.5), doubles.cell("lila", steps=600)
    assert (complete(early)["rate"], complete(early)["finish"], complete(early)["choose_from"]) == (0.5, 0.0, 0.8)
    assert (complete(late)["rate"], complete(late)["finish"], complete(late)["choose_from"]) == (3e-3, 0.5, 1.0)


def test_defaults_of_the_library_do_not_reach_a_cell(monkeypatch):
    cell = doubles.cell("lila", steps=600)
    before = LearnConfig.for_method("lila", **complete(cell))
    assert LearnConfig.for_method("lila", **cell.settings) != before  # here they do
    monkeypatch.setitem(learn.METHOD_DEFAULTS, "lila", {"rate": 7.0, "finish": 0.1, "eta_steps": 3})
    assert LearnConfig.for_method("lila", **complete(cell)) == before


@pytest.mark.parametrize("method", ["contrastive", "multitask"])
def test_pretraining_and_adaptation_name_every_setting(method, monkeypatch):
    settings = {"method": method, "data": "mnist", "images": 20, "epochs": 2}
    assert set(_fields(settings)) == names(AmortizeConfig) - {"seed", "device"}
    assert set(ADAPT) == names(AdaptConfig) - {"device"}
    before = _config(settings, 1)
    monkeypatch.setitem(hyper.METHOD_DEFAULTS, method, {"rate": 7.0})
    assert _config(settings, 1) == before and before.epochs == 2
