"""A short run of the fuzzing suite over every reader; `make fuzz` is the long one."""

import time

import pytest

import fuzzing
from fuzzing import READERS, attempt, outcome
from structures import STRUCTURES, examples


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(name, tmp_path):
    found = {n: attempt(name, n, tmp_path) for n in range(30)}
    assert not {n: said for n, said in found.items() if said}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structured_nonsense_is_read_or_refused(name, tmp_path):
    assert not list(examples(name, 0, 30, tmp_path))


def test_a_reader_that_raises_something_else_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(READERS, "config", READERS["config"].__class__(READERS["config"].make, lambda f: {}["x"]))
    assert "KeyError" in attempt("config", 0, tmp_path)


def for_ever():
    while True:
        pass


@pytest.mark.parametrize("hang", [for_ever, lambda: time.sleep(99)], ids=["busy", "asleep"])
def test_a_reader_that_does_not_end_is_found(hang, monkeypatch):
    monkeypatch.setattr(fuzzing, "SECONDS", 0.2)
    assert "TimeoutError: more than" in outcome(hang)
