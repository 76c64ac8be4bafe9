"""Every test keeps its hands off the user's data: a cache of its own, and no `$AUGURY_DATA`."""

import os

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    before = dict(os.environ)
    os.environ["AUGURY_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ.pop("AUGURY_DATA", None)
    yield
    os.environ.clear()
    os.environ.update(before)
