"""Your own network: any module with one output per class; its BatchNorm layers are replaced by GroupNorm.

Run it: python examples/own_model.py [EPOCHS] [IMAGES]

BatchNorm couples the inputs of a batch, so the evidence of one input is not defined: Augury refuses it by name.
"""

import sys

import torch
from torch import nn

import augury

epochs, images = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (30, 1000)
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 16, 5, stride=2, padding=2),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
data = augury.load("mnist5k", variant="partially_rotated", subset=images)  # planted: 90 degrees

try:
    augury.learn(data, model=net, epochs=1)
except augury.AuguryError as error:
    print(f"With BatchNorm: {error}\n")

learned = augury.learn(data, model=augury.swap_batchnorm(net), generators=("rotation", "scale"), epochs=epochs)
for name, width in learned.invariance.widths.items():
    print(f"{name}: up to {width.value:.2f} {width.unit} ({width.verdict})")
print(f"test accuracy {100 * learned.invariance.test_accuracy:.1f} %")
