"""Signals [N, C, T]: which time shifts and stretches do not change the label.

Run it: python examples/time_series.py [EPOCHS] [SIGNALS]
"""

import sys

import numpy as np

import augury

epochs, N = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (30, 600)
rng, T = np.random.default_rng(0), 64


def pulse(kind: int) -> np.ndarray:
    """One pulse: smooth (0), square (1) or a pair (2), at a random time and of a random size."""
    t = np.arange(T) - T / 2 - rng.uniform(-16, 16)  # planted: a time shift of up to 16 samples
    shapes = [np.exp(-((t / 4) ** 2)), (abs(t) < 4) * 1.0, np.exp(-(((abs(t) - 6) / 2) ** 2))]
    return shapes[kind] * rng.uniform(1, 2) + rng.normal(0, 0.05, T)


y = np.arange(N) % 3
x = np.stack([pulse(kind) for kind in y])[:, None].astype(np.float32)

learned = augury.learn((x, y), generators=("time_shift", "time_stretch"), epochs=epochs)
for name, width in learned.invariance.widths.items():
    print(f"{name}: up to {width.value:.2f} {width.unit} ({width.verdict})")
print(f"test accuracy {100 * learned.invariance.test_accuracy:.1f} %")
