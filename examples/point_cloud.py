"""Point clouds [N, P, 3]: rotations about which axes do not change the label.

Run it: python examples/point_cloud.py [EPOCHS] [CLOUDS]

Cones with the tip up or down: rotation about the vertical axis does not change the class, about the others it does.
"""

import sys

import numpy as np

import augury

epochs, N = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (30, 400)
rng, P = np.random.default_rng(0), 48


def cone(on_its_tip: bool) -> np.ndarray:
    """Points on an elliptic cone, rotated about the vertical axis at random."""
    height = rng.uniform(-1, 1, P)
    radius = (1 + height) / 2 if on_its_tip else (1 - height) / 2
    around, turn = rng.uniform(-np.pi, np.pi, P), rng.uniform(-np.pi, np.pi)
    x, y = radius * np.cos(around), 0.4 * radius * np.sin(around)
    return np.stack([np.cos(turn) * x - np.sin(turn) * y, np.sin(turn) * x + np.cos(turn) * y, height], 1)


y = np.arange(N) % 2
x = np.stack([cone(bool(label)) for label in y]).astype(np.float32)

learned = augury.learn(augury.load((x, y), kind="points"), generators=("rotation3d",), epochs=epochs)
for name, width in learned.invariance.widths.items():
    print(f"{name}: up to {width.value:.0f} {width.unit} ({width.verdict})")
print(f"test accuracy {100 * learned.invariance.test_accuracy:.1f} %")
