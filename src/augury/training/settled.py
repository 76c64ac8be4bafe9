"""When to stop early: the widths and the evidence no longer move.

Both jump about from epoch to epoch, so what is compared is the mean of the older half of a window of epochs
with the mean of the newer half. Widths are compared as eta (radians, half image sizes, log-scales: numbers
near 1), the evidence per training example (nats).
"""

from collections.abc import Sequence


def drift(values: Sequence[float]) -> float:
    """Return how far the mean of the newer half lies from the mean of the older half."""
    half = len(values) // 2
    return abs(sum(values[-half:]) - sum(values[:half])) / half


def settled(
    etas: Sequence[Sequence[float]],
    evidences: Sequence[float],
    window: int,
    eta_tolerance: float,
    evidence_tolerance: float,
) -> bool:
    """Say whether every width and the evidence have come to rest."""
    if window < 2 or len(etas) < window or 0 < len(evidences) < window:
        return False
    tracks = zip(*etas[-window:], strict=True)
    at_rest = all(drift(track) <= eta_tolerance for track in tracks)
    return at_rest and (not evidences or drift(evidences[-window:]) <= evidence_tolerance)
