"""One browser for all tests here; without one, `tests/conftest.py` deselects them and says so."""

import pytest

from browser.chromium import Browser, find_chromium


@pytest.fixture(scope="session")
def browser():
    binary = find_chromium()
    assert binary is not None
    opened = Browser(binary)
    yield opened
    opened.close()
