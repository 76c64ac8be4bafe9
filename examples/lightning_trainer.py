"""Learn invariances with Lightning's Trainer: an orbit average in the module, a callback in the Trainer.

Run it: python examples/lightning_trainer.py [EPOCHS] [IMAGES] [PROCESSES]        (pip install 'augury[lightning]')
"""

import sys

import lightning.pytorch as lightning
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import augury
from augury.lightning import LearnInvariance

given = [int(word) for word in sys.argv[1:]]
epochs, images, processes = given + [30, 1000, 1][len(given) :]
data = augury.load("mnist5k", variant="rotated", subset=images)  # planted: 180 degrees
lightning.seed_everything(0, verbose=False)


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        net = nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.Tanh(), nn.Linear(200, 10))
        self.model = augury.OrbitAverage(net, augury.Affine2d((28, 28), "rotation"), samples=8)
        self.rng = torch.Generator().manual_seed(0)

    def training_step(self, batch, index):
        x, y = batch
        return F.cross_entropy(self.model.average(x, self.rng), y)

    def test_step(self, batch, index):
        x, y = batch
        self.log("test_accuracy", (self.model(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.model.net.parameters(), lr=5e-3)  # the weights; the callback moves the widths


train = DataLoader(TensorDataset(data.x_train, data.y_train), batch_size=100, shuffle=True)
test = DataLoader(TensorDataset(data.x_test, data.y_test), batch_size=500)
callback = LearnInvariance()
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", devices=processes, callbacks=[callback], **quiet)
module = Digits()
trainer.fit(module, train)

found = {name: round(float(value), 2) for name, value in trainer.callback_metrics.items()}
(scores,) = trainer.test(module, test, verbose=False)
if trainer.is_global_zero:
    print(found)
    print(f"test accuracy {100 * scores['test_accuracy']:.1f} %")
