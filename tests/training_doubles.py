"""Small learners and data sets for the tests of the loop."""

import torch
from torch import nn

from augury.config.learn import LearnConfig
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.models.orbit import OrbitAverage
from augury.training.batches import Batches
from augury.training.learner import Learner
from augury.training.optimizers import Cosine
from augury.training.progress import Progress
from augury.transforms.affine2d import AffineCoordinates


def coordinates(n: int = 24, seed: int = 0) -> Dataset:
    rng = generator(seed)
    x = torch.randn(2 * n, 2, generator=rng)
    y = (x[:, 0] * x[:, 1] > 0).long()
    return Dataset(x[:n], y[:n], x[n:], y[n:], kind="coordinates", class_names=("off", "on"))


def small_net(seed: int = 0, dropout: float = 0.0) -> nn.Module:
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 2))
    rng = generator(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.uniform_(-0.5, 0.5, generator=rng)
    return net


class ToyLearner(Learner):
    """Weights by Adam, widths by SGD with momentum once per epoch, and an odd bit of extra state."""

    def __init__(self, evidences=None, dropout: float = 0.0) -> None:
        self.model = OrbitAverage(small_net(dropout=dropout), AffineCoordinates("rotation"), samples=3, samples_eval=3)
        self.weights = torch.optim.Adam(self.model.net.parameters(), lr=0.05)
        self.widths = torch.optim.SGD([self.model.transform.eta], lr=0.1, momentum=0.9)
        self.schedule = Cosine(self.weights, 1e-3)
        self.calls = torch.zeros((), dtype=torch.int64)
        self.evidences = evidences

    def train_step(self, x, y, rng):
        loss = nn.functional.cross_entropy(self.model.average(x, rng), y)
        self.weights.zero_grad()
        loss.backward()
        self.weights.step()
        self.calls += 1
        return loss.item()

    def end_epoch(self, batches: Batches, epoch, rng):
        for x, y in batches(rng):
            self.widths.zero_grad()
            (nn.functional.cross_entropy(self.model.average(x, rng), y) - self.model.transform.eta.sum()).backward()
            self.widths.step()
        return {} if self.evidences is None else {"log_evidence": self.evidences[epoch - 1]}

    def optimizers(self):
        return {"weights": self.weights, "widths": self.widths}

    def schedules(self):
        return [self.schedule]

    def extra_state(self):
        return {"calls": self.calls}

    def load_extra_state(self, state):
        self.calls.copy_(state["calls"])


class Killed(BaseException):
    """Stands for a kill: nothing in the loop may catch it."""


class KillAt(Progress):
    """Kill in a step of an epoch (default: its end)."""

    def __init__(self, epoch: int, step: int | None = None) -> None:
        self.at = (epoch, step)

    def step(self, epoch, step, loss):
        if (epoch, step) == self.at:
            raise Killed

    def epoch(self, row):
        if (row["epoch"], None) == self.at:
            raise Killed


def settings(**given) -> LearnConfig:
    return LearnConfig(**{"epochs": 5, "batch": 10, "checkpoint_seconds": 0.0, **given})


def same_bits(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def without_time(rows: list[dict]) -> list[dict]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def state_of(learner: Learner) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in learner.model.state_dict().items()}
