"""Every test keeps its hands off the user's data: a cache of its own, and no `$AUGURY_DATA`.

The tests in `browser/` need a Chromium. Where there is none they are deselected, and the last line says so.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from browser.chromium import find_chromium

BROWSER = Path(__file__).parent / "browser"


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    before = dict(os.environ)
    os.environ["AUGURY_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ.pop("AUGURY_DATA", None)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def augury(monkeypatch, capsys):
    """Run the command line in this process: words in; exit code, standard output and standard error out."""
    from augury.cli.main import main

    def run(*words):
        monkeypatch.setattr("sys.argv", ["augury", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def short_runs():
    """Climb the evidence twice in a run, and scan every width at three places: both take most of a run's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("augury.config.learn.CLIMBS", 2)
        patch.setattr("augury.methods.widths.SINGLE", (2, 0))
        patch.setattr("augury.methods.widths.SEVERAL", (2, 0))
        yield


@pytest.fixture
def npz(tmp_path, monkeypatch):
    """A file of 20 + 10 small grey images of three classes, in the folder that is current."""
    monkeypatch.chdir(tmp_path)
    x, y = np.random.default_rng(0).random((30, 8, 8), dtype=np.float32), np.arange(30) % 3
    np.savez(tmp_path / "digits.npz", x_train=x[:20], y_train=y[:20], x_test=x[20:], y_test=y[20:])
    return "digits.npz"


def pytest_collection_modifyitems(config, items):
    if find_chromium() is None:
        inside = [item for item in items if BROWSER in item.path.parents]
        if inside:
            config.hook.pytest_deselected(items=inside)
            items[:] = [item for item in items if BROWSER not in item.path.parents]


def pytest_terminal_summary(terminalreporter, config):
    asked = [Path(str(arg).split("::")[0]).resolve() for arg in config.args]
    if find_chromium() is None and any(place in (BROWSER, *BROWSER.parents) for place in asked):
        terminalreporter.write_line(
            "The browser tests (tests/browser) were deselected: no Chromium was found. "
            "Install one (apt-get install chromium), or name one: AUGURY_CHROMIUM=/path/to/chromium.",
            yellow=True,
        )
