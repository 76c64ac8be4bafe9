"""Your own transformation: a list of widths and one function; here the gamma of a camera.

Run it: python examples/own_transformation.py [EPOCHS] [IMAGES]
"""

import math
import sys
from dataclasses import replace

import torch

import augury

epochs, images = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (30, 1000)


class Gamma(augury.Transform):
    """A view is x ** gamma, with log gamma uniform on [-eta, eta]."""

    kind = "image"

    def __init__(self):
        super().__init__([augury.units.WidthSpec("gamma", augury.units.FACTOR, upper=math.log(10))])

    def act(self, x, eps):
        """Map [B, C, H, W] and noise [B, S, 1] to views [B, S, C, H, W]; at eta = 0 the image itself."""
        gamma = (eps[..., 0] * self.eta[0]).exp()
        return x[:, None].clamp(min=1e-3) ** gamma[..., None, None, None]


data = augury.load("mnist5k", subset=images)
camera = Gamma()
camera.set_widths({"gamma": 3.0})  # planted: every image has a gamma from 1/3 to 3
rng = torch.Generator().manual_seed(0)
with torch.no_grad():
    data = replace(data, x_train=camera(data.x_train, 1, rng)[:, 0], x_test=camera(data.x_test, 1, rng)[:, 0])

learned = augury.learn(data, model="mlp5", transform=Gamma(), epochs=epochs)
width = learned.invariance.widths["gamma"]
print(f"gamma: up to x {width.value:.2f} learned ({width.verdict}), x 3.00 planted")
print(f"test accuracy {100 * learned.invariance.test_accuracy:.1f} %")
