"""When a run counts as settled."""

import random

from augury.training.loop import drift, settled


def test_drift_is_the_distance_between_the_means_of_the_halves():
    assert drift([1.0, 3.0, 6.0, 8.0]) == 5.0
    assert drift([1.0, 99.0, 1.5]) == 0.5
    assert drift([4.0, 2.0]) == 2.0


def at_rest(track, evidences=(), window=10):
    return settled([[value] for value in track], evidences, window, eta_tolerance=0.02, evidence_tolerance=0.01)


def test_a_width_that_grows_is_not_settled_one_that_jitters_is_and_short_histories_never_are():
    jitter = random.Random(0)
    assert not at_rest([0.01 * k for k in range(40)])
    assert at_rest([3.0 + 0.01 * jitter.uniform(-1, 1) for _ in range(40)])
    assert not at_rest([1.0] * 9)
    assert not at_rest([1.0] * 20, evidences=[-0.5] * 9)
    assert not at_rest([1.0] * 20, window=0)
    assert not at_rest([1.0] * 20, window=1)


def test_widths_and_evidence_must_all_be_at_rest():
    both = [[3.0, 0.05 * k] for k in range(20)]
    assert not settled(both, [], 10, 0.02, 0.01)
    assert settled([[3.0, 0.5] for _ in range(20)], [], 10, 0.02, 0.01)
    still = [1.0] * 20
    assert at_rest(still, [-0.5] * 20)
    assert not at_rest(still, [-1.0 + 0.05 * k for k in range(20)])
