"""Learn invariances in a training loop of your own with several processes, which Lightning Fabric starts.

Run it: python examples/fabric_loop.py [EPOCHS] [IMAGES] [PROCESSES]        (pip install 'augury[fabric]')
"""

import sys

import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import augury

given = [int(word) for word in sys.argv[1:]]
epochs, images, processes = given + [30, 1000, 1][len(given) :]
fabric = Fabric(accelerator="cpu", devices=processes)
fabric.launch()

data = augury.load("mnist5k", variant="rotated", subset=images)  # planted: 180 degrees
rng = torch.Generator().manual_seed(0)  # the same in every process
torch.manual_seed(0)

net = nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.Tanh(), nn.Linear(200, 10))
model = augury.OrbitAverage(net, augury.Affine2d((28, 28), "rotation"), samples=8)
evidence = augury.Evidence(model, N=images, fabric=fabric)  # the processes share its work

optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
trained, optimizer = fabric.setup(model, optimizer)  # averages the gradients
trained.mark_forward_method("average")
batch = max(1, 100 // processes)  # of each process
loader = DataLoader(TensorDataset(data.x_train, data.y_train), batch, shuffle=True)
loader = fabric.setup_dataloaders(loader)  # deals the data out

for epoch in range(1, epochs + 1):
    for x, y in loader:
        loss = F.cross_entropy(trained.average(x, rng), y) + evidence.penalty()
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
    found = evidence.step(loader, rng)
    turn = model.transform.describe()["rotation"]
    fabric.print(f"epoch {epoch}: log evidence {found['log_evidence']:.0f}, rotation {turn:.0f} deg")

model.eval()
with torch.no_grad():
    accuracy = (model(data.x_test).argmax(1) == data.y_test).double().mean()
fabric.print(f"test accuracy {100 * accuracy:.1f} %")
