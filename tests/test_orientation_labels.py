"""Labels that are the orientation: a half turn must not be called invariant; where it is an invariance, it is found."""

import pytest
import torch

import augury


def turned(digits, label):
    """Real digits, every other one upside down; the class is the orientation, or the digit."""
    data, parts = augury.load("mnist5k"), {}
    for part, n in (("train", 240), ("test", 60)):
        y = getattr(data, f"y_{part}")
        x = getattr(data, f"x_{part}")[torch.isin(y, torch.tensor(digits))][:n]
        digit = y[torch.isin(y, torch.tensor(digits))][:n]
        down = torch.arange(n) % 2
        parts[f"x_{part}"] = torch.where(down[:, None, None, None] == 1, x.rot90(2, (-2, -1)), x)
        parts[f"y_{part}"] = down if label == "orientation" else (digit == digits[0]).long()
    return augury.Dataset(**parts, class_names=("0", "1"))


def found(data, *generators):
    return augury.learn(data, "mlp5", generators=generators, steps=200, finish=0.0).invariance


@pytest.mark.slow  # two runs on real digits, with their intervals: verdicts need a network that has learned
def test_a_digit_upright_against_itself_upside_down_is_not_invariant_to_a_half_turn():
    of_orientation = found(turned((4,), "orientation"), "C2", "rotation")
    assert of_orientation.test_accuracy > 0.95
    assert of_orientation.widths["C2"].verdict == "not invariant" and of_orientation.widths["C2"].value < 5
    rotation = of_orientation.widths["rotation"]
    assert rotation.value < 45 and rotation.high is not None and rotation.high < 90
    of_digit = found(turned((4, 0), "digit"), "C2")
    assert of_digit.widths["C2"].verdict != "not invariant" and of_digit.widths["C2"].value > 5
