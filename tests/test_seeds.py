"""Several trainings: Rubin's rules, Student's quantile, one table on the command line."""

import math

import pytest
from pytest import approx

from augury.core.errors import InputError
from augury.core.units import DEGREES, WidthSpec
from augury.methods.seeds import combined, learn_seeds, student
from augury.records.results import Width

ROTATION = WidthSpec("rotation", DEGREES, math.pi)


def widths(*triples, verdict="invariant"):
    return [Width(value, "deg", low, high, verdict) for value, low, high in triples]


@pytest.mark.parametrize(("nu", "t"), [(1.0, 12.706), (2.0, 4.303), (7.0, 2.365), (30.0, 2.042), (math.inf, 1.96)])
def test_students_quantile(nu, t):
    assert student(nu) == approx(t, rel=1e-3)


def test_rubins_rules_by_hand():
    found = combined(ROTATION, widths((80.0, 70.0, 90.0), (90.0, 80.0, 100.0), (100.0, 90.0, 110.0)), 0.1)
    within, between = (20 / 3.92) ** 2, (1 + 1 / 3) * 100
    half = student(2 * (1 + within / between) ** 2) * math.sqrt(within + between)
    assert (found.value, found.low, found.high) == approx((90, 90 - half, 90 + half))
    assert found.verdict == "invariant"


def test_equal_runs_keep_their_interval_and_bounds_hold():
    found = combined(ROTATION, widths(*[(170.0, 160.0, 180.0)] * 3), 0.1)
    assert (found.low, found.high) == (approx(160, abs=0.1), approx(180))
    assert combined(ROTATION, widths((2.0, 0.0, 6.0), (20.0, 10.0, 30.0)), 0.1).verdict == "undecided"


def test_a_verdict_is_that_of_most_runs_and_of_all_widths_together():
    runs = [(20.0, 12.0, 28.0)] * 3
    assert combined(ROTATION, widths(*runs), 0.1).verdict == "invariant"
    assert combined(ROTATION, widths(*runs, verdict="undecided"), 0.1).verdict == "undecided"  # labels changed there
    assert combined(ROTATION, widths(*[(14.0, 7.0, 21.0)] * 3), 0.1, 6).verdict == "undecided"
    assert student(7.0, 5) == approx(3.499, rel=1e-3)


def test_one_training_has_no_spread():
    with pytest.raises(InputError, match="at least two trainings; got 1"):
        learn_seeds("toy", 1)


def test_command_line(augury, tmp_path):
    words = ["learn", "toy", "--variant", "rotated", "--subset", "60", "--epochs", "4", "--batch", "30"]
    words += ["--set", "evidence_below=9", "--no-baseline", "--run", str(tmp_path / "a"), "--seeds", "2"]
    code, shown, _ = augury(*words)
    assert code == 0 and "seed_0" in shown and "seed_1" in shown and "rotation" in shown
    assert (tmp_path / "a" / "seeds.json").is_file() and (tmp_path / "a" / "seed_1" / "report.html").is_file()
    _, again, _ = augury(*words, "--resume")
    assert again.splitlines()[:8] == shown.splitlines()[:8]
