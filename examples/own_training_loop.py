"""Learn invariances in your own training loop: an orbit average, an evidence, an evidence step per epoch.

Run it: python examples/own_training_loop.py [EPOCHS] [IMAGES]
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

import augury

epochs, images = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (30, 1000)
data = augury.load("mnist5k", variant="rotated", subset=images)  # planted: 180 degrees
rng = torch.Generator().manual_seed(0)
torch.manual_seed(0)

net = nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.Tanh(), nn.Linear(200, 10))
model = augury.OrbitAverage(net, augury.Affine2d((28, 28)), samples=8)  # all six widths start at zero
evidence = augury.Evidence(model, N=images)
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)


def batches():
    """Return the training set in mini-batches, in random order."""
    order = torch.randperm(images, generator=rng)
    return [(data.x_train[index], data.y_train[index]) for index in order.split(100)]


for epoch in range(1, epochs + 1):
    for x, y in batches():
        loss = F.cross_entropy(model.average(x, rng), y) + evidence.penalty()  # the prior is learned too
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    found = evidence.step(batches(), rng)  # curvature, prior, widths
    turn = model.transform.describe()["rotation"]
    print(f"epoch {epoch}: loss {loss.item():.3f}, log evidence {found['log_evidence']:.0f}, rotation {turn:.0f} deg")

model.eval()
with torch.no_grad():
    accuracy = (model(data.x_test).argmax(1) == data.y_test).double().mean()
print({name: round(value, 2) for name, value in model.transform.describe().items()})
print(f"test accuracy {100 * accuracy:.1f} %")
