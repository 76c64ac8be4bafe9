"""What counts as recovering a planted invariance: thresholds in the units a person reads.

"Near 0" is a width that hardly moves anything: 2 pixels of 28, 8 degrees, 15 % of scale. "Large" is one that is at
least half of what the variants plant.
"""

from collections.abc import Callable, Mapping

Widths = Mapping[str, float]

NEAR_ZERO = {
    "translate_x": 2.0,
    "translate_y": 2.0,
    "rotation": 8.0,
    "scale_x": 1.15,
    "scale_y": 1.15,
    "shear": 0.15,
}
LARGE = {
    "translate_x": 4.0,
    "translate_y": 4.0,
    "rotation": 45.0,
    "scale_x": 1.41,
    "scale_y": 1.41,
    "shear": 0.5,
}


def _rotated(w: Widths) -> bool:
    return w["rotation"] >= 150 and all(w[k] <= v for k, v in NEAR_ZERO.items() if k != "rotation")


def _partially_rotated(w: Widths) -> bool:
    return 60 <= w["rotation"] <= 120


def _translated(w: Widths) -> bool:
    return all(5 <= w[k] <= 11 for k in ("translate_x", "translate_y"))


def _scaled(w: Widths) -> bool:
    return all(w[k] >= LARGE[k] for k in ("scale_x", "scale_y"))


def _original(w: Widths) -> bool:
    return all(w[k] < v for k, v in LARGE.items())


RECOVERED: dict[str, tuple[str, Callable[[Widths], bool]]] = {
    "rotated": ("rotation at least 150 deg, the other five near 0", _rotated),
    "partially_rotated": ("rotation between 60 and 120 deg", _partially_rotated),
    "translated": ("both translations between 5 and 11 px", _translated),
    "scaled": ("both scales at least x 1.41 (half the planted log-scale)", _scaled),
    "original": ("no large width", _original),
}
"""What must hold on each variant, in words and as a test of the learned widths."""


def recovered(variant: str, widths: Widths) -> bool:
    """Return whether widths match what was planted."""
    return RECOVERED[variant][1](widths)
