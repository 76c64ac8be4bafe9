"""`augury data list` and `augury data fetch`."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from augury.cli.data import app
from augury.data.fetch import RECIPES, Recipe, parse_idx_parts
from augury.data.routes import Official
from data_doubles import content_sha256, four_arrays, idx_files, served, sha256


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("AUGURY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AUGURY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "300")


def run(*arguments):
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_list_shows_what_is_there_and_how_to_get_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr("augury.cli.console.out.width", 400)  # no path is broken over lines
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data/mnist.npz", **four_arrays())
    text = run("list").stdout
    assert str(tmp_path / "data/mnist.npz") in text
    assert "augury data fetch cifar10" in text
    assert "built in" in text


def test_list_as_json_is_one_object(tmp_path):
    found = json.loads(run("list", "--json").stdout)
    lines = {line["name"]: line for line in found["data_sets"]}
    assert lines["mnist"]["found"] is None and lines["mnist"]["how"] == "augury data fetch mnist"
    assert lines["toy"]["found"] == "built in" and lines["helen68"]["task"] == "regression"
    assert found["looked_in"] == [str(tmp_path / "data"), str(tmp_path / "cache")]


def test_fetch(tmp_path, monkeypatch):
    arrays = four_arrays()
    files = idx_files(arrays, zipped=True)
    (tmp_path / "site").mkdir()
    for name, content in files.items():
        (tmp_path / "site" / name).write_bytes(content)
    route = Official("http://127.0.0.1:9", {name: sha256(content) for name, content in files.items()})
    monkeypatch.setitem(RECIPES, "mnist", Recipe(((route, parse_idx_parts),), content_sha256(arrays)))
    with served(tmp_path / "site") as address:
        result = run("fetch", "mnist", "--url", address, "--json")
    assert json.loads(result.stdout) == {
        "name": "mnist",
        "path": str(tmp_path / "cache/mnist.npz"),
        "route": "official download",
        "failed": [],
    }
    assert "already there" in run("fetch", "mnist").stdout
